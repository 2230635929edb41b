"""Validates the data of a result against the tool's `returns` before the result is passed on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

from jackfield.registry.arguments import Violation, compile_schema, shortened, violations
from jackfield.strict_json import pointer

MAX_REPORTED = 5
"""Maximum number of violations reported for one result."""


class ResultValidator:
    """The `returns` of one tool, compiled once."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def violations(self, data: Any) -> list[Violation]:
        """Return all violations in JSON data, with the values; for the tool's author."""
        return violations(self._validator, data, self._schema)

    def report(self, encoded: bytes) -> list[dict[str, str]]:
        """Return the first violations in encoded data, without its values; empty if there are none.

        This checks the JSON instead of the handler's objects, because the JSON is sent: NaN becomes null.
        """
        data = orjson.loads(encoded)
        if self._validator.is_valid(data):
            return []
        return [
            {"path": shortened(pointer(*error.instance_path)), "message": shortened(error.message)}
            for error in islice(self._masked.iter_errors(data), MAX_REPORTED)
        ]

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        # Compiled at the first call, so that a host with hundreds of tools starts faster.
        return compile_schema(self._schema)

    @cached_property
    def _masked(self) -> jsonschema_rs.Draft202012Validator:
        # Compiled at the first violation, because most tools never have one.
        return compile_schema(self._schema, mask="the value")
