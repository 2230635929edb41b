"""A server made from an OpenAPI document: checks every request against it and answers with generated data.

It reads the original document with a validator for OpenAPI's own dialect of JSON Schema, so that it shares no
code with the importer. A request that the document does not allow gets 400 with the reason.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

METHODS = ("get", "post", "put", "patch", "delete")


class RefusedRequestError(Exception):
    """The document does not allow the request."""


class DocumentServer:
    """Serves every operation of a document; `served` lists the ids of those that were called correctly."""

    def __init__(self, document: dict[str, Any], token: str) -> None:
        self._document = document
        self._token = token
        self.served: list[str] = []
        self.refused: list[str] = []
        self.url = ""

    def app(self) -> Starlette:
        # Fixed paths first: `/labels/shared` is not a label id.
        paths = sorted(self._document["paths"], key=lambda path: path.count("{"))
        return Starlette(
            routes=[
                Route(path, self._endpoint(path, method), methods=[method.upper()])
                for path in paths
                for method in METHODS
                if method in self._document["paths"][path]
            ]
        )

    def _endpoint(self, path: str, method: str) -> Any:
        item = self._document["paths"][path]
        operation = item[method]

        async def endpoint(request: Request) -> Response:
            try:
                self._check(item, operation, request, await request.body())
            except RefusedRequestError as error:
                self.refused.append(f"{operation['operationId']}: {error}")
                return JSONResponse({"error": str(error)}, 400)
            self.served.append(operation["operationId"])
            return self._answer(operation)

        return endpoint

    def _check(self, item: dict[str, Any], operation: dict[str, Any], request: Request, body: bytes) -> None:
        if request.headers.get("authorization") != f"Bearer {self._token}":
            raise RefusedRequestError("not authorised")
        given = [*item.get("parameters", ()), *operation.get("parameters", ())]
        parameters = [self.inlined(each) for each in given]
        known = {each["name"] for each in parameters if each["in"] == "query"}
        if unknown := request.query_params.keys() - known:
            raise RefusedRequestError(f"unknown query {unknown}")
        sources: dict[str, Any] = {
            "path": request.path_params,
            "query": request.query_params,
            "header": request.headers,
        }
        for each in parameters:
            text = sources[each["in"]].get(each["name"])
            if text is not None:
                self._validate(_parsed(text, each["schema"]), each["schema"], each["name"])
            elif each.get("required"):
                raise RefusedRequestError(f"{each['name']} is missing")
        self._check_body(operation, request, body)

    def _check_body(self, operation: dict[str, Any], request: Request, body: bytes) -> None:
        if "requestBody" not in operation:
            if body:
                raise RefusedRequestError("a body where none is allowed")
            return
        if request.headers.get("content-type") != "application/json":
            raise RefusedRequestError("the body is not JSON")
        schema = self.inlined(operation["requestBody"]["content"]["application/json"]["schema"])
        value = json.loads(body)
        self._validate(value, schema, "body")
        if unknown := value.keys() - set(_members(schema)):
            raise RefusedRequestError(f"unknown members {unknown}")

    def _validate(self, value: Any, schema: Any, name: str) -> None:
        validator = OAS30Validator(schema, format_checker=oas30_format_checker)
        for error in validator.iter_errors(value):
            raise RefusedRequestError(f"{name}: {error.message}")

    def _answer(self, operation: dict[str, Any]) -> Response:
        ((status, given),) = operation["responses"].items()
        content = self.inlined(given).get("content")
        if content is None:
            return Response(status_code=int(status))
        schema = content["application/json"]["schema"]
        value = _generated(schema)
        self._validate(value, schema, "answer")
        return JSONResponse(value, int(status))

    def inlined(self, value: Any) -> Any:
        """Return a part of the document without references; the document is not recursive."""
        if isinstance(value, list):
            return [self.inlined(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            target: Any = self._document
            for part in value["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            return self.inlined(target)
        return {key: self.inlined(each) for key, each in value.items()}

    @contextmanager
    def running(self) -> Iterator[DocumentServer]:
        with serving(self.app()) as url:
            self.url = url
            yield self


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free port of this machine, in a thread."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        (port,) = {socket.getsockname()[1] for each in server.servers for socket in each.sockets}
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def _members(schema: dict[str, Any]) -> list[str]:
    inner = [name for part in schema.get("allOf", ()) for name in _members(part)]
    return [*schema.get("properties", {}), *inner]


def _parsed(text: str, schema: dict[str, Any]) -> Any:
    """Read a parameter as the document describes it: lists are separated by commas."""
    if schema.get("type") == "array":
        return [_parsed(each, schema["items"]) for each in text.split(",")]
    if schema.get("type") in {"integer", "number", "boolean"}:
        return json.loads(text)
    return text


def _generated(schema: dict[str, Any]) -> Any:
    if "example" in schema:
        return schema["example"]
    if "enum" in schema:
        return schema["enum"][0]
    if "allOf" in schema:
        return _generated(schema["allOf"][0])
    kind = schema["type"]
    if kind == "object":
        return {name: _generated(each) for name, each in schema["properties"].items()}
    if kind == "array":
        return [_generated(schema["items"])] * 2
    formats = {"date": "2027-03-01", "date-time": "2027-03-01T10:00:00Z", "uri": "https://example.com/1"}
    texts = {**formats, "email": "ada@example.com"}
    values = {"boolean": True, "integer": 1, "string": texts.get(schema.get("format", ""), "text")}
    return values[kind]
