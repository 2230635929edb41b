"""Calls the operations of an HTTP API.

The address and the credentials come from the operator's environment variables, never from the model. Argument
values are percent-encoded, so that they cannot change the path; redirects are not followed, because they
would send the credentials to another address.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx
from jackfield import ErrorType, ToolError, ToolResponse, fail, ok

MAX_RESPONSE = 1024 * 1024
"""The maximum size of a response in bytes; a larger response is refused."""
TIMEOUT = httpx.Timeout(30, connect=10)
MAX_MESSAGE = 500

_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Credential:
    """One way to authenticate: where the secret goes, and the environment variable that holds it."""

    kind: str
    """`bearer`, `basic`, `header`, `query` or `cookie`."""
    variable: str
    name: str = ""

    @property
    def secret(self) -> str:
        """The secret; empty if the operator has not set it."""
        return os.environ.get(self.variable, "").strip()


@dataclass(frozen=True)
class Api:
    """An API: its default address, and the credentials that its operations may use."""

    variable: str
    default: str
    credentials: dict[str, Credential]

    def address(self) -> str:
        """Return the base address without a trailing slash."""
        given = os.environ.get(self.variable, "").strip() or self.default
        if not given.startswith(("https://", "http://")):
            raise ToolError(
                ErrorType.PERMANENT,
                f"The address of the service is not configured: the operator must set {self.variable}.",
            )
        return given.rstrip("/")


@dataclass(frozen=True)
class Parameter:
    """An operation's parameter, and the argument that holds its value, by default of the same name."""

    place: str
    name: str
    argument: str = ""
    style: str = ""
    exploded: bool | None = None
    as_json: bool = False

    @property
    def explode(self) -> bool:
        """True if members are separate; the specification's default depends on style and place."""
        if self.exploded is not None:
            return self.exploded
        form = self.style in {"", "form"} and self.place in {"query", "cookie"}
        return form or self.style == "deepObject"


@dataclass(frozen=True)
class Operation:
    """An operation of the API: how arguments are converted to a request."""

    tool_id: str
    method: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    body: dict[str, str] | None = None
    """The arguments that are members of the body, with the names of the members."""
    whole_body: str = ""
    """The argument that is the body."""
    content_type: str = ""
    security: tuple[tuple[str, ...], ...] = ()
    """Alternatives; each lists the credentials that it needs."""
    encoded: bool = False
    """True if some arguments have a different shape in the API."""

    @property
    def idempotent(self) -> bool:
        """True if HTTP guarantees that a repetition has no further effect."""
        return self.method in {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}

    @property
    def writes(self) -> bool:
        """True if a failed request may have changed something."""
        return self.method not in {"GET", "HEAD", "OPTIONS"}


async def call(api: Api, operation: Operation, args: dict[str, Any]) -> ToolResponse:
    """Send an operation's request; return the response, or a failure that a model understands."""
    if operation.encoded:
        from .wire_arguments import wire_arguments

        args = wire_arguments(operation.tool_id, args)
    request = _request(api, operation, args)
    try:
        async with (
            httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, verify=_certificates()) as client,
            client.stream(**request) as response,
        ):
            return _answer(operation, response, await _limited(operation, response))
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return fail(ErrorType.TRANSIENT, "The service cannot be reached.", retryable=operation.idempotent)
    except httpx.TimeoutException:
        return _interrupted(operation, "The service did not answer in time.")
    except httpx.TransportError:
        return _interrupted(operation, "The connection to the service broke.")


@cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def _interrupted(operation: Operation, message: str) -> ToolResponse:
    return fail(
        ErrorType.TRANSIENT,
        message,
        retryable=operation.idempotent,
        partial_side_effects=operation.writes,
    )


def _request(api: Api, operation: Operation, args: dict[str, Any]) -> dict[str, Any]:
    query: list[str] = []
    headers: dict[str, str] = {"Accept": "application/json"}
    cookies: list[str] = []
    segments: dict[str, str] = {}
    for parameter in operation.parameters:
        value = args.get(parameter.argument or parameter.name)
        if value is None:
            continue
        if parameter.as_json:
            value = json.dumps(value)
        if parameter.place == "path":
            segments[parameter.name] = path_value(parameter, value)
        elif parameter.place == "query":
            query.extend(query_pairs(parameter, value))
        elif parameter.place == "header":
            headers[parameter.name] = _header(parameter.name, _joined(value, ",", explode=parameter.explode))
        else:
            cookies.append(f"{quote(parameter.name, safe='')}={quote(_joined(value, ','), safe='')}")
    _authenticate(api, operation, headers, query, cookies)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    address = api.address() + filled_path(operation.path, segments)
    content = _body(operation, args, headers)
    return {
        "method": operation.method,
        "url": f"{address}?{'&'.join(query)}" if query else address,
        "headers": headers,
        "content": content,
    }


def filled_path(template: str, values: dict[str, str]) -> str:
    """Return the path with its values; a value can neither add a segment nor refer to a parent."""
    path = _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), template)
    for segment, original in zip(path.split("/"), template.split("/"), strict=True):
        if original and (not segment or segment in {".", ".."}):
            raise ToolError(
                ErrorType.PERMANENT, "A value for the path of the request is missing or not allowed."
            )
    return path


def path_value(parameter: Parameter, value: Any) -> str:
    """Serialise a path parameter in the styles simple, label and matrix."""
    named = parameter.style == "matrix"
    prefix = {"label": ".", "matrix": ";"}.get(parameter.style, "")
    separator = (prefix or ",") if parameter.explode else ","
    name = _encoded(parameter.name)
    if isinstance(value, dict):
        pairs = [(_encoded(key), _encoded(each)) for key, each in value.items()]
        parts = (
            [f"{key}={each}" for key, each in pairs]
            if parameter.explode
            else [e for pair in pairs for e in pair]
        )
    elif isinstance(value, list):
        parts = [_encoded(each) for each in value]
        if named and parameter.explode:
            parts = [f"{name}={each}" for each in parts]
    else:
        parts = [f"{name}={_encoded(value)}" if named else _encoded(value)]
        return prefix + parts[0]
    joined = separator.join(parts)
    return f";{name}={joined}" if named and not parameter.explode else prefix + joined


def query_pairs(parameter: Parameter, value: Any) -> Iterator[str]:
    """Serialise a query parameter in the styles form, spaceDelimited, pipeDelimited and deepObject."""
    name = _encoded(parameter.name)
    if isinstance(value, dict):
        if parameter.style == "deepObject":
            yield from (f"{name}%5B{_encoded(key)}%5D={_encoded(each)}" for key, each in value.items())
        elif parameter.explode:
            yield from (f"{_encoded(key)}={_encoded(each)}" for key, each in value.items())
        else:
            yield f"{name}={','.join(_encoded(part) for pair in value.items() for part in pair)}"
    elif isinstance(value, list):
        if parameter.explode:
            yield from (f"{name}={_encoded(each)}" for each in value)
        else:
            separator = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(parameter.style, ",")
            yield f"{name}={separator.join(map(_encoded, value))}"
    else:
        yield f"{name}={_encoded(value)}"


def _encoded(value: Any) -> str:
    return quote(_text(value), safe="")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return "" if value is None else json.dumps(value)


def _joined(value: Any, separator: str, *, explode: bool = False) -> str:
    if isinstance(value, list):
        return separator.join(map(_text, value))
    if isinstance(value, dict):
        pairs = [f"{key}={_text(each)}" if explode else f"{key},{_text(each)}" for key, each in value.items()]
        return separator.join(pairs)
    return _text(value)


def _header(argument: str, value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise ToolError(
            ErrorType.PERMANENT, f"{argument} must have only printable ASCII characters, without line breaks."
        )
    return value.strip()


def _body(operation: Operation, args: dict[str, Any], headers: dict[str, str]) -> bytes | None:
    if operation.whole_body:
        if operation.whole_body not in args:
            return None
        body = args[operation.whole_body]
    elif operation.body is not None:
        body = {member: args[argument] for argument, member in operation.body.items() if argument in args}
    else:
        return None
    headers["Content-Type"] = operation.content_type
    if operation.content_type == "application/x-www-form-urlencoded":
        pairs = [
            pair for name, value in body.items() for pair in query_pairs(Parameter("query", name), value)
        ]
        return "&".join(pairs).encode()
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def _authenticate(
    api: Api, operation: Operation, headers: dict[str, str], query: list[str], cookies: list[str]
) -> None:
    if not operation.security:
        return
    for alternative in sorted(operation.security, key=len, reverse=True):
        used = [api.credentials[name] for name in alternative]
        if all(each.secret for each in used):
            for each in used:
                _add_secret(each, headers, query, cookies)
            return
    wanted = sorted({api.credentials[name].variable for each in operation.security for name in each})
    raise ToolError(
        ErrorType.AUTH,
        f"The operator must configure access to the service: {' or '.join(wanted)} is not set.",
        suggestion="Tell the user that this is not set up.",
    )


def _add_secret(
    credential: Credential, headers: dict[str, str], query: list[str], cookies: list[str]
) -> None:
    secret = credential.secret
    if credential.kind == "query":
        query.append(f"{_encoded(credential.name)}={_encoded(secret)}")
    elif credential.kind == "cookie":
        cookies.append(f"{_encoded(credential.name)}={_encoded(secret)}")
    elif credential.kind == "header":
        headers[credential.name] = _header(credential.variable, secret)
    elif credential.kind == "basic":
        headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
    else:
        headers["Authorization"] = _header(credential.variable, f"Bearer {secret}")


async def _limited(operation: Operation, response: httpx.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MAX_RESPONSE:
            raise ToolError(
                ErrorType.PERMANENT,
                f"The service's response is larger than {MAX_RESPONSE // 1024} KiB.",
                suggestion="Ask for less, for example with a filter or a smaller page.",
                # The service has already answered, so a write may have taken effect.
                partial_side_effects=operation.writes,
            )
    return bytes(data)


def _answer(operation: Operation, response: httpx.Response, data: bytes) -> ToolResponse:
    status = response.status_code
    if not response.is_success:
        return _failure(operation, response, data)
    if not data:
        return ok({"status": status})
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return ok(json.loads(data))
        except ValueError:
            return fail(
                ErrorType.PERMANENT,
                "The service answered with invalid JSON.",
                partial_side_effects=operation.writes,
            )
    try:
        return ok({"status": status, "text": data.decode(response.charset_encoding or "utf-8")})
    except (LookupError, UnicodeDecodeError):
        return ok({"status": status, "contentType": kind, "bytes": len(data)})


def _failure(operation: Operation, response: httpx.Response, data: bytes) -> ToolResponse:
    status = response.status_code
    details: dict[str, Any] = {"status": status}
    told = " ".join(data[: 4 * MAX_MESSAGE].decode("utf-8", "replace").split())[:MAX_MESSAGE]
    if told:
        details["answer"] = told
    message = f"The service answered {status} {response.reason_phrase}".strip() + "."
    if status in {408, 425} or status >= 500:
        return fail(
            ErrorType.TRANSIENT,
            message,
            retryable=operation.idempotent,
            partial_side_effects=operation.writes and status != 425,
            details=details,
        )
    if status == 429:
        wait = response.headers.get("retry-after", "")
        hint = f"Try again after {wait} seconds." if wait.isdecimal() else "Try again later."
        return fail(ErrorType.RATE_LIMIT, message, suggestion=hint, details=details)
    if status in {401, 403}:
        return fail(ErrorType.AUTH, message, details=details)
    if status in {409, 412, 423}:
        return fail(ErrorType.CONFLICT, message, details=details)
    if 300 <= status < 400:
        message = f"The service redirects this request ({status}), and redirects are not followed."
        # A service may redirect to the result of a write.
        return fail(ErrorType.PERMANENT, message, partial_side_effects=operation.writes, details=details)
    return fail(ErrorType.PERMANENT, message, details=details)
