"""What the schema adapters of providers have in common.

A schema is read into shapes, which say for each type what is accepted; references, combinations and
conditions are gone by then. Whatever a shape cannot hold is left out, so that it accepts more than the schema
and never less, and is remembered as a loss. A writer of a provider's package turns shapes into its form.
"""

from __future__ import annotations

from jackfield_schemas.names import wire_name
from jackfield_schemas.reading import Reading, read

__all__ = ["Reading", "read", "wire_name"]
