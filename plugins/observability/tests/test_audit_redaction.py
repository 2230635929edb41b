"""What must not be in the audit is not in it, whatever its shape."""

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
from jackfield_observability.redaction import REDACTED, Redactor, text
from jackfield_observability.sensitive import sensitive
from jackfield_observability.settings import AuditSettings

SECRET = "tr0ub4dor"  # what no line may hold
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
def test_a_marked_value_is_never_in_the_file(
    shape: Shape, other_place: bool, opened: Callable[..., Any], exchange: ModuleType, audit: Audit
) -> None:
    schema, value, definitions = shape
    parameters = {"properties": {"value": schema}, "$defs": definitions}

    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("given", **args)
        return ok()

    talk = exchange.Exchange(exchange.tool(handler, parameters=parameters), observers=[audit])
    talk.call(value=value)
    if other_place:
        talk.call(somewhere=[{"else": {"value": value}}])
    talk.close()
    audit.drain()

    written = audit._file.path.read_text("utf-8")
    os.truncate(audit._file.path, 0)
    assert written.count('"event":"call"') == written.count("\n") > 0
    assert SECRET not in written


def test_marks_that_lead_to_each_other_in_a_circle_are_all_found() -> None:
    parameters = {
        "properties": {"b": {"$ref": "#/$defs/B"}, "a": {"$ref": "#/$defs/A"}, "free": {"type": "string"}},
        "$defs": {
            "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"x-sensitive": True}]},
            "B": {"items": {"$ref": "#/$defs/A"}},
        },
    }
    assert sensitive(parameters).names == {"a", "b"}


@pytest.mark.parametrize("reference", ["#anchor", "https://example.org/schema", "#/$defs/missing", 7])
def test_a_reference_that_cannot_be_followed_is_taken_for_a_mark(reference: Any) -> None:
    assert sensitive({"properties": {"odd": {"$ref": reference}}}).names == {"odd"}


def test_a_mark_on_the_parameters_hides_all_arguments() -> None:
    redactor = Redactor({"writeOnly": True})
    arguments = {"a": "something", "b": 12345}
    secrets = redactor.secrets(arguments)

    assert redactor.arguments(arguments, secrets) == REDACTED
    assert redactor.shown(["something", 12345, 6], secrets) == [REDACTED, REDACTED, 6]


def test_only_what_is_marked_is_hidden(audited: Callable[..., Any], exchange: ModuleType) -> None:
    parameters = {
        "properties": {
            "pin": {"type": "string", "writeOnly": True},
            "not_so": {"type": "string", "writeOnly": False},
            "cards": {"items": {"properties": {"number": {"x-sensitive": True}, "name": {}}}},
        }
    }
    talk = audited(exchange.tool(parameters=parameters))
    talk.call(pin="1234", not_so="seen", cards=[{"number": 4111, "name": "Ada"}], Pin="5678")
    (line,) = talk.lines()

    assert line["arguments"] == {
        "pin": REDACTED,
        "not_so": "seen",
        "cards": [{"number": REDACTED, "name": "Ada"}],
        "Pin": REDACTED,
    }


def test_a_secret_that_is_repeated_elsewhere_is_hidden_there_too(
    audited: Callable[..., Any], exchange: ModuleType, path: Path
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("tried", line=f"login with {args['password']}", length=len(args["password"]))
        return ok()

    talk = audited(exchange.tool(handler))
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
def test_a_name_that_sounds_like_a_secret_hides_its_value(name: str) -> None:
    assert Redactor({}).shown({name: SECRET}, frozenset()) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "tokenizer", "secretary", "author", "key", "query", "compass", "pin", "laptop", "options"],
)
def test_a_name_that_does_not_keeps_it(name: str) -> None:
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
def test_a_text_that_looks_like_a_secret_is_taken_out_of_its_sentence(secret: str) -> None:
    assert text(f"run it with {secret} please") == f"run it with {REDACTED} please"
    # Also where the cut would have gone through it.
    assert secret[-6:] not in text("x " * 245 + secret + " y" * 100)


def test_the_password_in_an_address_is_taken_out() -> None:
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
def test_a_secret_that_is_written_with_its_name_is_taken_out(written: str) -> None:
    shown = text(f"the server said {written}")
    assert "SECRET" not in shown
    assert "more" not in shown
    assert shown.startswith("the server said ")
    assert REDACTED in shown


@pytest.mark.parametrize("secret", ['tr0ub"4dor', "tr0ub\n4dor", "tr0ub\\4dor", "trüb4dor", "tr0ub'4\"dor"])
def test_a_secret_is_hidden_in_whatever_way_an_object_is_made_into_a_text(
    audited: Callable[..., Any], exchange: ModuleType, path: Path, secret: str
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit(
            "tried", python=str(args), ascii=json.dumps(args), utf8=json.dumps(args, ensure_ascii=False)
        )
        return ok()

    talk = audited(exchange.tool(handler, parameters={"properties": {"pin": {"x-sensitive": True}}}))
    talk.call(pin=secret)
    (line,) = talk.lines()
    (note,) = line["notes"]
    assert note == {"event": "tried", "python": REDACTED, "ascii": REDACTED, "utf8": REDACTED}


def test_arguments_that_nobody_judged_are_looked_through(
    audited: Callable[..., Any], exchange: ModuleType
) -> None:
    class Broken:
        def concerns(self, tool: Any, session: Any) -> bool:
            return True

        async def apply(self, call: Any, proceed: Any) -> Any:
            raise RuntimeError("a policy of somebody else")

    closed = {"type": "object", "properties": {"who": {}}, "additionalProperties": False}
    broken = [("broken", Stage.ADMIT, Broken())]
    talk = audited(exchange.tool(parameters=closed), policies=broken)
    talk.call(who="ada", cookie=SECRET)
    (line,) = talk.lines()
    assert line["arguments"] == {"who": "ada", "cookie": REDACTED}
