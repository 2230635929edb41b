"""Secrets never appear in the audit, in any form."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jackfield import ok
from jackfield.offers import Stage
from jackfield_observability.audit import Audit
from jackfield_observability.redaction import REDACTED, Redactor, sensitive_properties, text
from jackfield_observability.settings import AuditSettings

SECRET = "tr0ub4dor"  # secrets that no line may contain
NAMES = st.sampled_from(
    ["who", "pin", "card", "items", "properties", "$ref", "Zwölf", "a/b", "~tilde", "%25"]
)
MARK = st.sampled_from(["writeOnly", "x-sensitive"])

Shape = tuple[dict[str, Any], Any, dict[str, Any]]
"""A schema, a value that it describes, and the definitions that it refers to."""


def _marked(mark: str, value: Any) -> Shape:
    return {mark: True}, value, {}


SECRETS = st.one_of(
    st.just(SECRET),
    st.integers(0, 99).map(lambda number: f"{SECRET}{number}" * (number * 3 + 1)),
    st.just({"deep": [SECRET, {"er": SECRET}]}),
    st.just([[SECRET]]),
)
LEAVES: st.SearchStrategy[Shape] = st.one_of(
    st.builds(_marked, MARK, SECRETS),
    st.sampled_from([({"type": "string"}, "harmless", {}), ({"type": "integer"}, 7, {})]),
)


@st.composite
def _around(draw: st.DrawFn, shapes: st.SearchStrategy[Shape]) -> Shape:
    kind = draw(st.sampled_from(["object", "list", "prefix", "map", "any", "all", "then", "ref", "circle"]))
    if kind == "object":
        members = draw(st.dictionaries(NAMES, shapes, min_size=1, max_size=3))
        return (
            {"type": "object", "properties": {name: shape[0] for name, shape in members.items()}},
            {name: shape[1] for name, shape in members.items()},
            {key: value for shape in members.values() for key, value in shape[2].items()},
        )
    schema, value, definitions = draw(shapes)
    if kind in ("ref", "circle"):
        # The same name only for the same definition.
        name = hashlib.sha256(repr((kind, schema)).encode()).hexdigest()[:12]
        reference = {"$ref": f"#/$defs/{name}"}
        target = {"anyOf": [{"items": reference}, schema]} if kind == "circle" else schema
        return reference, [[value]] if kind == "circle" else value, {**definitions, name: target}
    around: dict[str, tuple[dict[str, Any], Any]] = {
        "list": ({"type": "array", "items": schema}, [value, value]),
        "prefix": ({"prefixItems": [{}, schema]}, ["x", value]),
        "map": ({"additionalProperties": schema}, {"any name": value}),
        "any": ({"anyOf": [{"type": "null"}, schema]}, value),
        "all": ({"allOf": [{}, schema]}, value),
        "then": ({"if": {}, "then": schema}, value),
    }
    return *around[kind], definitions


SHAPES = st.recursive(LEAVES, _around, max_leaves=8)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Audit(
        AuditSettings(tmp_path_factory.mktemp("redaction") / "audit.jsonl", max_bytes=0, arguments=True)
    )
    yield made
    made._end()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=SHAPES, other_place=st.booleans())
def test_a_sensitive_value_is_never_in_the_file(
    shape: Shape, other_place: bool, opened: Callable[..., Any], audited_host: ModuleType, audit: Audit
) -> None:
    schema, value, definitions = shape
    parameters = {"properties": {"value": schema}, "$defs": definitions}

    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("given", **args)
        return ok()

    talk = audited_host.AuditedHost(audited_host.tool(handler, parameters=parameters), observers=[audit])
    talk.call(value=value)
    if other_place:
        talk.call(somewhere=[{"else": {"value": value}}])
    talk.close()
    audit.drain()

    written = audit._file.path.read_text("utf-8")
    os.truncate(audit._file.path, 0)
    assert written.count('"event":"call"') == written.count("\n") > 0
    assert SECRET not in written


def test_circular_references_to_sensitive_schemas_are_found() -> None:
    parameters = {
        "properties": {"b": {"$ref": "#/$defs/B"}, "a": {"$ref": "#/$defs/A"}, "free": {"type": "string"}},
        "$defs": {
            "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"x-sensitive": True}]},
            "B": {"items": {"$ref": "#/$defs/A"}},
        },
    }
    assert sensitive_properties(parameters).names == {"a", "b"}


@pytest.mark.parametrize("reference", ["#anchor", "https://example.org/schema", "#/$defs/missing", 7])
def test_an_unresolvable_reference_counts_as_sensitive(reference: Any) -> None:
    assert sensitive_properties({"properties": {"odd": {"$ref": reference}}}).names == {"odd"}


def test_sensitive_parameters_hide_all_arguments() -> None:
    redactor = Redactor({"writeOnly": True})
    arguments = {"a": "something", "b": 12345}
    secrets = redactor.secrets(arguments)

    assert redactor.arguments(arguments, secrets) == REDACTED
    assert redactor.shown(["something", 12345, 6], secrets) == [REDACTED, REDACTED, 6]


def test_only_sensitive_values_are_hidden(audited: Callable[..., Any], audited_host: ModuleType) -> None:
    parameters = {
        "properties": {
            "pin": {"type": "string", "writeOnly": True},
            "not_so": {"type": "string", "writeOnly": False},
            "cards": {"items": {"properties": {"number": {"x-sensitive": True}, "name": {}}}},
        }
    }
    talk = audited(audited_host.tool(parameters=parameters))
    talk.call(pin="1234", not_so="seen", cards=[{"number": 4111, "name": "Ada"}], Pin="5678")
    (line,) = talk.lines()

    assert line["arguments"] == {
        "pin": REDACTED,
        "not_so": "seen",
        "cards": [{"number": REDACTED, "name": "Ada"}],
        "Pin": REDACTED,
    }


def test_a_repeated_secret_is_hidden_everywhere(
    audited: Callable[..., Any], audited_host: ModuleType, path: Path
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("tried", line=f"login with {args['password']}", length=len(args["password"]))
        return ok()

    talk = audited(audited_host.tool(handler))
    talk.call(password=SECRET, command=f"login {SECRET}", comment="nothing to hide")
    (line,) = talk.lines()

    assert SECRET not in path.read_text()
    assert line["arguments"]["comment"] == "nothing to hide"
    assert line["notes"] == [{"event": "tried", "line": REDACTED, "length": len(SECRET)}]


@pytest.mark.parametrize(
    "name",
    [
        "password", "user_password", "newPassword", "PASSWD", "pwd", "passphrase", "secret", "client_secret",
        "clientSecret", "token", "access_token", "accessToken", "accesstoken", "api_key", "apiKey", "apikey",
        "X-API-Key", "authorization", "Authorization", "credentials", "private_key", "awsAccessKey", "cookie",
        "Set-Cookie", "bearer", "access_tokens", "refreshTokens", "passcode", "jwt", "otp",
    ],
)  # fmt: skip
def test_a_name_of_a_secret_hides_its_value(name: str) -> None:
    assert Redactor({}).shown({name: SECRET}, frozenset()) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "tokenizer", "secretary", "author", "key", "query", "compass", "pin", "laptop", "options"],
)
def test_other_names_keep_their_value(name: str) -> None:
    assert Redactor({}).shown({name: "seen"}, frozenset()) == {name: "seen"}


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdefgh12345678",
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrst1234",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "password=hunter2",
        "pwd=hunter2",
        "passphrase: hunter2",
        "Authorization: Bearer hunter2",
        "Authorization: hunter2",
    ],
)
def test_a_text_like_a_secret_is_removed_from_its_sentence(secret: str) -> None:
    assert text(f"run it with {secret} please") == f"run it with {REDACTED} please"
    # Also where truncation would split it.
    assert secret[-6:] not in text("x " * 245 + secret + " y" * 100)


def test_the_password_in_a_url_is_removed() -> None:
    assert text("postgres://ada:lovelace@db/x") == f"postgres://{REDACTED}@db/x"


@pytest.mark.parametrize(
    "written",
    [
        "https://example.org/cb?access_token=SECRET&state=1",
        "client_secret=SECRET",
        '{"password": "SECRET and more", "user": "ada"}',
        "{'api_key': 'SECRET', 'user': 'ada'}",
        '{"body": "{\\"token\\": \\"SECRET\\"}"}',
    ],
)
def test_a_secret_after_its_name_is_removed(written: str) -> None:
    shown = text(f"the server said {written}")
    assert "SECRET" not in shown
    assert "more" not in shown
    assert shown.startswith("the server said ")
    assert REDACTED in shown


@pytest.mark.parametrize("secret", ['tr0ub"4dor', "tr0ub\n4dor", "tr0ub\\4dor", "trüb4dor", "tr0ub'4\"dor"])
def test_a_secret_is_hidden_in_every_text_form_of_an_object(
    audited: Callable[..., Any], audited_host: ModuleType, path: Path, secret: str
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit(
            "tried", python=str(args), ascii=json.dumps(args), utf8=json.dumps(args, ensure_ascii=False)
        )
        return ok()

    talk = audited(audited_host.tool(handler, parameters={"properties": {"pin": {"x-sensitive": True}}}))
    talk.call(pin=secret)
    (line,) = talk.lines()
    (note,) = line["notes"]
    assert note == {"event": "tried", "python": REDACTED, "ascii": REDACTED, "utf8": REDACTED}


def test_unvalidated_arguments_are_searched_for_secrets(
    audited: Callable[..., Any], audited_host: ModuleType
) -> None:
    class Broken:
        def applies_to(self, tool: Any, session: Any) -> bool:
            return True

        async def apply(self, call: Any, proceed: Any) -> Any:
            raise RuntimeError("a policy of somebody else")

    closed = {"type": "object", "properties": {"who": {}}, "additionalProperties": False}
    broken = [("broken", Stage.ADMIT, Broken())]
    talk = audited(audited_host.tool(parameters=closed), policies=broken)
    talk.call(who="ada", cookie=SECRET)
    (line,) = talk.lines()
    assert line["arguments"] == {"who": "ada", "cookie": REDACTED}
