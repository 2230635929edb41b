"""JSON Schema parsing shared by the provider adapters.

`parser.parse_schema` turns a schema into shapes, which say what each type accepts; references, combinations
and conditions are resolved. A constraint that no shape can hold is omitted and reported, so that a shape may
accept more than the schema but never less. A subclass of `schema_writer.SchemaWriter` writes the shapes in
the form of its provider.
"""
