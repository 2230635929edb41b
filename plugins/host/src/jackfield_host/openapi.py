"""`GET /openapi.json`: the HTTP side of the host, written from the very objects that are served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from jackfield_host.endpoints.browser import SDP, SESSION
from jackfield_host.endpoints.calls import CALLS, SETTLE
from jackfield_host.endpoints.chat import CHAT
from jackfield_host.endpoints.confirmations import CONFIRMATIONS
from jackfield_host.endpoints.downloads import DOWNLOADS, START_DOWNLOAD
from jackfield_host.endpoints.events import EVENTS
from jackfield_host.endpoints.execute import EXECUTE
from jackfield_host.endpoints.health import HEALTH, STATUS
from jackfield_host.endpoints.operation import Operation, Said
from jackfield_host.endpoints.operations import AUDIT, DIFFERENCE, SESSIONS, STATS, TRANSCRIPT
from jackfield_host.endpoints.showing import METRICS, REGISTRY, TOOL, TOOLS
from jackfield_host.endpoints.tasks import TASKS
from jackfield_host.endpoints.visit import Visit
from jackfield_host.plugin_endpoints import PluginEndpoint, describe_routes
from jackfield_host.wire.answers import Failed

_REF = "#/components/schemas/{model}"

_DOCUMENT = "application/vnd.oai.openapi+json"

_FAILS_FOR_ALL = {
    403: "This name, origin or user may not use the host; of a ban `retryAfter` says how long it lasts.",
    414: "The address is too long.",
    431: "The headers are too large.",
    500: "The host failed.",
}
_FAILS_FOR_SOMEBODY = {
    401: "A token is missing or not accepted.",
    429: "Too many requests, sessions or streams.",
    503: "The store or the provider is not there, or the host is restarting.",
}
_FAILS_WITH_BODY = {
    400: "The body is wrong; the message says where.",
    408: "The body did not arrive.",
    413: "The body is too large.",
    415: "The body is not announced as JSON.",
}
_FAILS_WITH_SESSION = {400: "No session is named."}


async def openapi(visit: Visit) -> Response:
    """The document; it holds no secret."""
    return Response(_encoded(visit.house.endpoints), media_type=_DOCUMENT)


OPENAPI = Operation(
    "GET",
    "/openapi.json",
    "This document.",
    openapi,
    answers={200: (Said("OpenAPI 3.1.", media=_DOCUMENT),)},
    enter=Visit.screened,
)

OPERATIONS = (
    SESSION, SDP, CHAT, EXECUTE, CONFIRMATIONS, TASKS, EVENTS, TOOLS, TOOL, REGISTRY, HEALTH, STATUS, METRICS,
    SESSIONS, TRANSCRIPT, AUDIT, CALLS, SETTLE, STATS, DIFFERENCE, DOWNLOADS,
    START_DOWNLOAD, OPENAPI,
)  # fmt: skip
"""Every endpoint of the HTTP side."""


@lru_cache(maxsize=1)
def _encoded(endpoints: tuple[PluginEndpoint, ...]) -> bytes:
    return orjson.dumps(document(endpoints))


def document(endpoints: Iterable[PluginEndpoint] = ()) -> dict[str, Any]:
    """The OpenAPI document of the host, with the endpoints of plugins."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in _models(OPERATIONS)], ref_template=_REF, by_alias=True
    )
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    components: dict[str, Any] = schemas["$defs"]
    for endpoint in endpoints:
        described = describe_routes(endpoint)
        for path, operations in described.get("paths", {}).items():
            paths[path] = {
                method: _completed(operation, public=endpoint.offer.auth == "public")
                for method, operation in operations.items()
            }
        # A plugin cannot change what a schema of the host means.
        components = {**described.get("components", {}).get("schemas", {}), **components}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Jackfield host",
            "version": version("jackfield-host"),
            "description": "Conversations themselves go over the WebSockets /ws/text and /ws/voice.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key or a JWT; a host for its own machine alone asks for none.",
                }
            },
        },
    }


def _models(operations: Iterable[Operation]) -> list[type[BaseModel]]:
    found: dict[type[BaseModel], None] = {Failed: None}
    for operation in operations:
        if operation.body is not None:
            found[operation.body] = None
        found |= {said.model: None for forms in operation.answers.values() for said in forms if said.model}
    return list(found)


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": _responses(operation),
    }
    if operation.enter is not Visit.screened:
        described["security"] = [{}, {"bearer": []}]
    if operation.parameters:
        described["parameters"] = [
            {
                "name": each.name,
                "in": each.where,
                "description": each.meaning,
                "required": each.required,
                "schema": dict(each.schema),
            }
            for each in operation.parameters
        ]
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content("application/json", operation.body)}
    return described


def _completed(operation: Mapping[str, Any], *, public: bool) -> dict[str, Any]:
    """The description of a plugin's operation, with what the host adds to every operation."""
    fails = dict(_FAILS_FOR_ALL)
    if not public:
        fails |= _FAILS_FOR_SOMEBODY
    if "requestBody" in operation:
        fails |= _FAILS_WITH_BODY
    responses = {str(status): _failure(meaning) for status, meaning in fails.items()}
    completed = {**operation, "responses": dict(sorted((responses | operation["responses"]).items()))}
    return completed if public else {"security": [{}, {"bearer": []}], **completed}


def _failure(meaning: str) -> dict[str, Any]:
    return {"description": meaning, "content": _content("application/json", Failed)}


def _responses(operation: Operation) -> dict[str, Any]:
    fails = dict(_FAILS_FOR_ALL)
    if operation.enter is not Visit.screened:
        fails |= _FAILS_FOR_SOMEBODY
    if any(each.name == "Jackfield-Session" and each.required for each in operation.parameters):
        fails |= _FAILS_WITH_SESSION
    if operation.body is not None:
        fails |= _FAILS_WITH_BODY
    fails |= operation.fails
    responses = {str(status): _failure(meaning) for status, meaning in fails.items()}
    for status, forms in operation.answers.items():
        content: dict[str, Any] = {}
        for said in forms:
            content |= _content(said.media, said.model)
        meaning = " ".join(said.meaning for said in forms)
        responses[str(status)] = {"description": meaning, "content": content}
    return dict(sorted(responses.items()))


def _content(media: str, model: type[BaseModel] | None) -> dict[str, Any]:
    schema: Mapping[str, Any] = {"$ref": _REF.format(model=model.__name__)} if model else {"type": "string"}
    return {media: {"schema": schema}}
