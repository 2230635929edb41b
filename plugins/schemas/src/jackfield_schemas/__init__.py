"""JSON Schema parsing shared by the provider adapters.

`parser.parse_schema` turns a schema into shapes: what each type accepts, with references, combinations and
conditions resolved. A constraint that no shape can hold is left out, so that a shape accepts more than the
schema and never less, and the omission is reported. A subclass of `lowering.SchemaWriter` writes the shapes
in the form of its provider.
"""
