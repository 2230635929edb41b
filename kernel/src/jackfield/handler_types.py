"""The types in a handler's signature, and the conversions between them and JSON.

The conversions are chosen once, when a handler is loaded. A handler without types gets its arguments as they
are, and so does a handler whose types describe plain JSON, such as a `TypedDict` of strings and numbers. A
dataclass of such types is created from the arguments. Every other type is converted by pydantic, which is a
dependency of the tool and not of the kernel.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import types
import typing
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, NamedTuple

import orjson

from jackfield.contract.tool import ErrorType, Partial, ToolError, ToolResponse
from jackfield.strict_json import pointer

_MAX_ERRORS = 20

_SCALARS = (Any, object, str, int, float, bool, None, type(None))
_CONTAINERS = (list, dict, Mapping, Sequence)
_UNIONS = (typing.Union, types.UnionType)

# These annotations describe any JSON object, or what every handler returns, so they give no schema.
_OPEN_ARGUMENTS = ("Any", "Dict", "Mapping", "MutableMapping", "dict", "object")
_OPEN_RESULTS = (*_OPEN_ARGUMENTS, "None", "NoneType", "ToolResponse")


class HandlerTypeError(Exception):
    """A type in a handler's signature cannot be used; the message says why and what to do."""


class ArgumentsRefusedError(ToolError):
    """A type refused arguments that the schema accepts; the model gets a `VALIDATION` failure."""


class HandlerTypes(NamedTuple):
    """The types of a handler's arguments and of its result; None where the handler names none."""

    arguments: Any = None
    result: Any = None
    """Without `ToolResponse`, which a handler may return as well."""
    unresolved: tuple[str, ...] = ()
    """Annotations that do not exist at run time, such as a name imported under `TYPE_CHECKING`."""


def handler_types(execute: Callable[..., Any]) -> HandlerTypes:
    """Return the types in a handler's signature; resolve only the annotations that are needed."""
    try:
        signature = inspect.signature(execute)
    except (TypeError, ValueError):
        return HandlerTypes()
    first = next(iter(signature.parameters.values()), None)
    namespace = getattr(inspect.unwrap(_function(execute)), "__globals__", {})
    unresolved: list[str] = []
    arguments = None
    if first is not None and first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        arguments = _resolve(first.annotation, namespace, _OPEN_ARGUMENTS, unresolved)
    result = _resolve(signature.return_annotation, namespace, _OPEN_RESULTS, unresolved)
    if is_streaming(execute):
        result = _yielded(result)
    return HandlerTypes(arguments, _without_response(result), tuple(unresolved))


def typed(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that takes and returns JSON; one without types is returned as it is.

    Its result is awaitable if that of `execute` is. Raises `HandlerTypeError` if a type cannot be converted.
    """
    found = handler_types(execute)
    convert = None if found.arguments is None else _argument_conversion(found.arguments)
    render = None if found.result is None else _result_conversion(found.result)
    if convert is None and render is None:
        return execute
    accept = convert or _unchanged
    if render is None:
        # Not a coroutine function of its own: that would be one more coroutine for every call.
        def execute_converted(args: dict[str, Any], ctx: Any) -> Any:
            try:
                converted = accept(args)
            except ValueError as error:
                raise _refusal(error) from error
            return execute(converted, ctx)

        return execute_converted
    return _rendering(execute, accept, render)


def _rendering(
    execute: Callable[..., Any], accept: Callable[[Any], Any], render: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return a handler whose result is converted too."""

    def convert(args: dict[str, Any]) -> Any:
        try:
            return accept(args)
        except ValueError as error:
            raise _refusal(error) from error

    def data(result: Any) -> Any:
        return result if result is None or isinstance(result, ToolResponse) else render(result)

    async def execute_async(args: dict[str, Any], ctx: Any) -> Any:
        return data(await execute(convert(args), ctx))

    def execute_sync(args: dict[str, Any], ctx: Any) -> Any:
        return data(execute(convert(args), ctx))

    async def execute_streaming(args: dict[str, Any], ctx: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(execute(convert(args), ctx)) as values:
            async for value in values:
                yield value if isinstance(value, Partial) else data(value)

    if is_streaming(execute):
        return execute_streaming
    return execute_async if is_async(execute) else execute_sync


def is_json_type(hint: Any) -> bool:
    """Return whether every JSON value of this type is already an instance of it."""
    origin = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if origin is typing.Annotated:
        return is_json_type(inner[0]) and not any(map(_converts, inner[1:]))
    if origin in (typing.Required, typing.NotRequired):
        return is_json_type(inner[0])
    if origin is Literal:
        return all(value is None or type(value) in (str, int, bool) for value in inner)
    if origin in _UNIONS or origin in _CONTAINERS:
        return all(map(is_json_type, inner))
    if _is_typed_dict(hint):
        return all(map(is_json_type, typing.get_type_hints(hint, include_extras=True).values()))
    return any(hint is scalar for scalar in _SCALARS) or hint in _CONTAINERS


def is_async(execute: Callable[..., Any]) -> bool:
    """Return whether calling a handler returns a coroutine."""
    return inspect.iscoroutinefunction(_function(execute))


def is_streaming(execute: Callable[..., Any]) -> bool:
    """Return whether a handler is an async generator, which yields partial results before its answer."""
    return inspect.isasyncgenfunction(_function(execute))


def model_data(value: Any) -> Any:
    """Return the JSON of a pydantic model that a handler put into its data; the `default` of an encoder."""
    if (serializer := getattr(type(value), "__pydantic_serializer__", None)) is None:
        raise TypeError(f"{type(value).__name__} is not JSON")
    return serializer.to_python(value, mode="json", by_alias=True)


def is_open_annotation(annotation: str, open_names: Sequence[str] = _OPEN_ARGUMENTS) -> bool:
    """Return whether the text of an annotation names a type without members, such as `dict[str, Any]`."""
    return annotation.strip("\"' ").partition("[")[0].rpartition(".")[2].strip() in open_names


def _function(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that runs when an object is called."""
    return execute if inspect.isroutine(execute) else type(execute).__call__


def _resolve(
    annotation: Any, namespace: Mapping[str, Any], open_names: Sequence[str], unresolved: list[str]
) -> Any:
    """Return the type of an annotation; None if it is missing, describes any object, or cannot be resolved.

    Annotations are resolved one by one: the types of other parameters are often imported under
    `TYPE_CHECKING`.
    """
    if annotation is inspect.Signature.empty:
        return None
    if isinstance(annotation, str):
        try:
            # The text is the author's own annotation, which Python would evaluate in the same way.
            annotation = eval(annotation, dict(namespace))  # noqa: S307
        except Exception:  # noqa: BLE001 - an annotation may be any expression
            if not is_open_annotation(annotation, open_names):
                unresolved.append(annotation)
            return None
    return None if _is_open(annotation, open_names) else annotation


def _is_open(hint: Any, open_names: Sequence[str]) -> bool:
    base, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if open_names is _OPEN_RESULTS and base in (dict, Mapping) and inner:
        return inner[-1] is Any or inner[-1] is object
    return hint is None or getattr(base, "__name__", "") in open_names


def _yielded(hint: Any) -> Any:
    """Return the type that a streaming handler yields; None if it is open."""
    inner = typing.get_args(hint)
    if typing.get_origin(hint) not in (AsyncGenerator, AsyncIterable, AsyncIterator) or not inner:
        return None
    return None if inner[0] is Partial or _is_open(inner[0], _OPEN_RESULTS) else inner[0]


def _without_response(hint: Any) -> Any:
    """Remove `ToolResponse`, `Partial` and None from a union of results."""
    if typing.get_origin(hint) not in _UNIONS:
        return hint
    kept = tuple(each for each in typing.get_args(hint) if each not in (ToolResponse, Partial, type(None)))
    if not kept or any(_is_open(each, _OPEN_RESULTS) for each in kept):
        return None
    return typing.Union[kept]  # noqa: UP007 - the members are known only at run time


def _is_typed_dict(hint: Any) -> bool:
    # `typing_extensions` has its own class for Python 3.11.
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")


def _converts(extra: Any) -> bool:
    """Return whether metadata of `Annotated` needs pydantic, beyond what the schema has checked."""
    kind = type(extra)
    if kind.__name__ == "FieldInfo":
        return any(
            getattr(extra, name, None) is not None
            for name in ("alias", "validation_alias", "serialization_alias", "discriminator")
        )
    return kind.__module__.partition(".")[0] == "pydantic"


def _is_plain_dataclass(hint: Any) -> bool:
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)) or _is_pydantic(hint):
        return False
    hints = typing.get_type_hints(hint, include_extras=True)
    return all(
        is_json_type(hints[each.name]) and type(each.default).__name__ != "FieldInfo"
        for each in dataclasses.fields(hint)
    )


def _is_pydantic(hint: Any) -> bool:
    return "__pydantic_validator__" in vars(hint)


def _argument_conversion(hint: Any) -> Callable[[dict[str, Any]], Any] | None:
    try:
        if is_json_type(hint):
            return None
        if _is_plain_dataclass(hint):
            return lambda args: hint(**args)
    except NameError:
        pass  # A type that the class names does not exist at run time; pydantic says which.
    validate = _adapter(hint).validate_json
    # As JSON, because a strict model accepts a date as text only in JSON.
    return lambda args: validate(orjson.dumps(args))


def _result_conversion(hint: Any) -> Callable[[Any], Any] | None:
    try:
        if is_json_type(hint):
            return None
        if all(map(_is_plain_dataclass, _item_types(hint))):
            return lambda result: orjson.loads(orjson.dumps(result))
    except NameError:
        pass
    dump = _adapter(hint).dump_python
    return lambda result: dump(result, mode="json", by_alias=True)


def _item_types(hint: Any) -> Sequence[Any]:
    """Return a list's item type, or else the type itself, in a sequence."""
    return typing.get_args(hint) if typing.get_origin(hint) is list else (hint,)


def _adapter(hint: Any) -> Any:
    name = getattr(hint, "__name__", str(hint))
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise HandlerTypeError(
            f"its signature names {name}, which needs pydantic; add pydantic to the tool's dependencies"
        ) from None
    try:
        return pydantic.TypeAdapter(hint)
    except Exception as error:
        cause = str(error).partition("\n")[0]
        raise HandlerTypeError(
            f"its signature names {name}, which pydantic cannot convert: {cause}"
        ) from error


def _refusal(error: ValueError) -> ArgumentsRefusedError:
    """Return the failure for arguments that break a rule that the schema cannot express."""
    explain = getattr(error, "errors", None)
    if explain is None:
        errors = [{"path": "/", "message": str(error)}]
    else:
        # Without the values, which may be sensitive.
        found = explain(include_url=False, include_context=False, include_input=False)[:_MAX_ERRORS]
        errors = [
            {"path": pointer(*each["loc"]), "message": each["msg"].removeprefix("Value error, ")}
            for each in found
        ]
    shown = "; ".join(f"{each['path']}: {each['message']}".removeprefix("/: ") for each in errors[:3])
    return ArgumentsRefusedError(
        ErrorType.VALIDATION, f"The arguments are not valid: {shown}", details={"errors": errors}
    )


def _unchanged(value: Any) -> Any:
    return value
