"""`GET /openapi.json` and `GET /asyncapi.json`: API documents, generated from the code that is served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import orjson
from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import Message, message_type
from jackfield.protocol.messages import ALL_MESSAGES, CLIENT_MESSAGES, HOST_MESSAGES
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import SCHEMA_REF, Endpoint, RequestContext, ResponseForm
from jackfield_host.endpoint import SESSION as SESSION_NAME
from jackfield_host.endpoints.browser_calls import SDP, SESSION
from jackfield_host.endpoints.calls import CONFIRMATIONS, EXECUTE, TASKS
from jackfield_host.endpoints.chat import CHAT
from jackfield_host.endpoints.development import ACCEPT_LISTINGS, DEVELOPMENT
from jackfield_host.endpoints.downloads import DOWNLOADS, START_DOWNLOAD
from jackfield_host.endpoints.events import EVENTS
from jackfield_host.endpoints.health import HEALTH, LIVE, READY, STATUS
from jackfield_host.endpoints.hosts import HOSTS
from jackfield_host.endpoints.operations import AUDIT, CALLS, METRICS, SETTLE, STATS
from jackfield_host.endpoints.registry import REGISTRY, REGISTRY_DIFF, TOOL, TOOLS
from jackfield_host.endpoints.sessions import (
    DELETE_SESSION,
    SESSION_TITLE,
    SESSION_TOKEN,
    SESSIONS,
    TRANSCRIPT,
)
from jackfield_host.errors import to_http_error
from jackfield_host.host import Host
from jackfield_host.plugin_endpoints import PluginEndpoint, describe_routes
from jackfield_host.security.auth_errors import AuthError

if TYPE_CHECKING:
    from pydantic import BaseModel

_OPENAPI_TYPE = "application/vnd.oai.openapi+json"

_COMMON_ERRORS = {
    403: "The host name, origin or user is not accepted; for a ban, `retryAfter` says how long it lasts.",
    414: "The request target is too long.",
    431: "The headers are too large.",
    500: "The host failed with an internal error.",
}
_USER_ERRORS = {
    401: "A token is missing or not accepted.",
    429: "Too many requests, sessions or streams.",
    503: "The store or the provider is unavailable, or the host is restarting.",
}
_BODY_ERRORS = {
    400: "The body is invalid; the message says where.",
    408: "The body did not arrive.",
    413: "The body is too large.",
    415: "The content type is not JSON.",
}
_SESSION_ERRORS = {400: "The request names no session."}


async def openapi(context: RequestContext) -> Response:
    """Return the OpenAPI document; it contains no secret."""
    # In a thread, because generating the document for the first time takes long.
    document = await asyncio.to_thread(_encoded_openapi, context.host.endpoints)
    return Response(document, media_type=_OPENAPI_TYPE)


async def asyncapi(request: Request) -> Response:
    """Return the AsyncAPI document; it contains no secret, so pages of other sites may link to it."""
    try:
        await Host.of(request).authenticate(request.scope, "public")
    except AuthError as error:
        return to_http_error(error).response()
    return JSONResponse(await asyncio.to_thread(asyncapi_document))


OPENAPI = Endpoint(
    "GET",
    "/openapi.json",
    "This document.",
    openapi,
    responses={200: (ResponseForm("OpenAPI 3.1.", media_type=_OPENAPI_TYPE),)},
    auth="public",
)

ENDPOINTS = (
    SESSION, SDP, CHAT, EXECUTE, CONFIRMATIONS, TASKS, EVENTS, TOOLS, TOOL, REGISTRY, HEALTH, LIVE, READY,
    STATUS, HOSTS, METRICS, SESSIONS, TRANSCRIPT, SESSION_TOKEN, SESSION_TITLE, DELETE_SESSION, AUDIT, CALLS,
    SETTLE, STATS, REGISTRY_DIFF, DEVELOPMENT, ACCEPT_LISTINGS, DOWNLOADS, START_DOWNLOAD, OPENAPI,
)  # fmt: skip
"""Every HTTP endpoint of the host."""


@lru_cache(maxsize=1)
def _encoded_openapi(plugins: tuple[PluginEndpoint, ...]) -> bytes:
    return orjson.dumps(openapi_document(plugins))


def openapi_document(plugins: Iterable[PluginEndpoint] = ()) -> dict[str, Any]:
    """Return the OpenAPI document of the host, with the endpoints of plugins."""
    from pydantic.json_schema import models_json_schema

    _, schemas = models_json_schema(
        [(model, "validation") for model in _models(ENDPOINTS)],
        ref_template=SCHEMA_REF + "{model}",
        by_alias=True,
    )
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _describe_endpoint(endpoint)
    components: dict[str, Any] = schemas["$defs"]
    for plugin in plugins:
        described = describe_routes(plugin)
        for path, operations in described.get("paths", {}).items():
            paths[path] = {
                method: _complete_operation(operation, public=plugin.offer.auth == "public")
                for method, operation in operations.items()
            }
        # A plugin cannot redefine a schema of the host.
        components = {**described.get("components", {}).get("schemas", {}), **components}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Jackfield host",
            "version": version("jackfield-host"),
            "description": "Sessions use the WebSockets /ws/text and /ws/voice; see /asyncapi.json.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key or a JWT; a host that only its own machine can reach may "
                    "require none.",
                }
            },
        },
    }


def _models(endpoints: Iterable[Endpoint]) -> list[type[BaseModel]]:
    from jackfield_host import request_models, response_models

    found: dict[type[BaseModel], None] = {response_models.ErrorResponse: None}
    for endpoint in endpoints:
        if endpoint.body is not None:
            found[getattr(request_models, endpoint.body)] = None
        for forms in endpoint.responses.values():
            found |= {getattr(response_models, form.model): None for form in forms if form.model}
    return list(found)


def _describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "responses": _responses(endpoint),
    }
    if endpoint.auth != "public":
        described["security"] = [{}, {"bearer": []}]
    if endpoint.parameters:
        described["parameters"] = [
            {
                "name": each.name,
                "in": each.location,
                "description": each.description,
                "required": each.required,
                "schema": dict(each.schema),
            }
            for each in endpoint.parameters
        ]
    if endpoint.body is not None:
        described["requestBody"] = {"required": True, "content": _content("application/json", endpoint.body)}
    return described


def _complete_operation(operation: Mapping[str, Any], *, public: bool) -> dict[str, Any]:
    """Add the errors that every endpoint has to the description of a plugin's operation."""
    errors = dict(_COMMON_ERRORS)
    if not public:
        errors |= _USER_ERRORS
    if "requestBody" in operation:
        errors |= _BODY_ERRORS
    responses = {str(status): _error(description) for status, description in errors.items()}
    completed = {**operation, "responses": dict(sorted((responses | operation["responses"]).items()))}
    return completed if public else {"security": [{}, {"bearer": []}], **completed}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    errors = dict(_COMMON_ERRORS)
    if endpoint.auth != "public":
        errors |= _USER_ERRORS
    if any(each.name == SESSION_NAME and each.required for each in endpoint.parameters):
        errors |= _SESSION_ERRORS
    if endpoint.body is not None:
        errors |= _BODY_ERRORS
    errors |= endpoint.errors
    responses = {str(status): _error(description) for status, description in errors.items()}
    for status, forms in endpoint.responses.items():
        content: dict[str, Any] = {}
        for form in forms:
            content |= _content(form.media_type, form.model)
        description = " ".join(form.description for form in forms)
        responses[str(status)] = {"description": description, "content": content}
    return dict(sorted(responses.items()))


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": _content("application/json", "ErrorResponse")}


def _content(media_type: str, model: str | None) -> dict[str, Any]:
    schema: Mapping[str, Any] = {"$ref": SCHEMA_REF + model} if model else {"type": "string"}
    return {media_type: {"schema": schema}}


_MESSAGE_REF = "#/components/messages/"

_AUDIO_FRAME = {
    "name": "audio_frame",
    "title": "audio_frame",
    "summary": "A binary audio frame, from either side, on `/ws/voice` only.",
    "contentType": "audio/pcm;rate=24000;channels=1",
    "payload": {
        "schemaFormat": "application/vnd.aai.asyncapi;version=3.0.0",
        "schema": {"type": "string", "format": "binary", "description": "PCM16, 24 kHz, mono."},
    },
}


@cache
def asyncapi_document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document of the WebSockets."""
    from jackfield_host.client_messages import message_schemas

    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Jackfield sessions",
            "version": PROTOCOL.rpartition(".")[2],
            "description": _protocol_description(),
            "license": {"name": "MIT"},
        },
        "defaultContentType": "application/json",
        "channels": {"text": _channel("text"), "voice": _channel("voice")},
        "operations": {
            f"{action}{mode.title()}": _channel_operation(action, mode)
            for mode in ("text", "voice")
            for action in ("receive", "send")
        },
        "components": {
            "messages": {
                **{message.__name__: _describe_message(message) for message in ALL_MESSAGES},
                "AudioFrame": _AUDIO_FRAME,
            },
            "schemas": message_schemas(),
        },
    }


def _protocol_description() -> str:
    codes = "\n".join(f"- {each.code} `{each.name}`: {each.reason}. {each.advice}" for each in CLOSE_REASONS)
    return (
        f"JSON text frames, and on `/ws/voice` also binary audio frames. Subprotocol `{PROTOCOL}`. A client "
        "sends `start` or `resume` first; the host answers with `session`, or with `error` and closes the "
        f"connection. The host's close codes:\n\n{codes}"
    )


def _channel(mode: str) -> dict[str, Any]:
    return {
        "address": f"/ws/{mode}",
        "title": f"A {mode} session",
        "messages": {name: {"$ref": _MESSAGE_REF + name} for name in _message_names(ALL_MESSAGES, mode)},
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _channel_operation(action: str, mode: str) -> dict[str, Any]:
    """Describe what the host receives from clients, or sends to them."""
    messages = CLIENT_MESSAGES if action == "receive" else HOST_MESSAGES
    channel = f"#/channels/{mode}"
    return {
        "action": action,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{name}"} for name in _message_names(messages, mode)],
    }


def _message_names(messages: Iterable[type[Message]], mode: str) -> list[str]:
    return [message.__name__ for message in messages] + (["AudioFrame"] if mode == "voice" else [])


def _describe_message(message: type[Message]) -> dict[str, Any]:
    return {
        "name": message_type(message),
        "title": message_type(message),
        "summary": (message.__doc__ or "").strip(),
        "payload": {"$ref": SCHEMA_REF + message.__name__},
    }
