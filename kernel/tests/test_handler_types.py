"""Typed handlers: what they receive, what they may return, and what an untyped handler costs."""

from __future__ import annotations

import asyncio
import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from annotated_types import Ge
from jackfield import ErrorType, ToolContext, ToolError, ToolResponse, fail, ok
from jackfield.handler_types import HandlerTypeError, handler_types, typed
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from decimal import Context as AbsentType


class Place(enum.Enum):
    INSIDE = "inside"
    TERRACE = "terrace"


@dataclass
class Plain:
    party: Annotated[int, Ge(1), "How many people come."]
    names: list[str] = field(default_factory=list)
    place: Literal["inside", "terrace"] = "inside"
    note: str | None = None

    def __post_init__(self) -> None:
        if self.party == 13:
            raise ValueError("the restaurant is superstitious")


@dataclass
class Rich:
    at: datetime
    place: Place = Place.INSIDE
    guest: Plain | None = None


class PlainDict(TypedDict):
    party: int


class RichDict(TypedDict):
    at: datetime


class Model(BaseModel):
    model_config = ConfigDict(strict=True)

    at: datetime
    start: int = Field(default=1, alias="from")

    @model_validator(mode="after")
    def _in_order(self) -> Model:
        if self.start > 5:
            raise ValueError("from is at most 5")
        return self


class Booking(BaseModel):
    table: int
    price: Decimal
    booked_at: datetime = Field(alias="bookedAt")


def run(execute: Callable[..., Any], args: dict[str, Any]) -> Any:
    handler = typed(execute)
    result = handler(args, None)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


async def takes_plain(args: Plain, ctx: ToolContext) -> ToolResponse:
    return ok([type(args).__name__, args.party, args.names, args.place, args.note])


def takes_rich(args: Rich, ctx: ToolContext) -> ToolResponse:
    return ok([args.at.year, args.place, args.guest])


async def takes_dict(args: PlainDict, ctx: ToolContext) -> ToolResponse:
    return ok(args)


async def takes_rich_dict(args: RichDict, ctx: ToolContext) -> ToolResponse:
    return ok(args["at"])


async def takes_model(args: Model, ctx: ToolContext) -> ToolResponse:
    return ok([args.at, args.start])


async def untyped(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    return ok(args)


async def bare(args, ctx):  # type: ignore[no-untyped-def]
    return ok(args)


async def returns_model(args: dict[str, Any], ctx: ToolContext) -> Booking | ToolResponse:
    if not args:
        return fail(ErrorType.CONFLICT, "The table is taken.")
    return Booking(table=4, price=Decimal("9.50"), bookedAt=datetime(2026, 5, 1, tzinfo=UTC))


async def returns_dataclasses(args: dict[str, Any], ctx: ToolContext) -> list[Plain]:
    return [Plain(2)]


async def misses_a_type(args: AbsentType, ctx: ToolContext) -> ToolResponse:
    return ok(args)


AT = "2026-05-01T19:00:00+02:00"


def test_a_dataclass_of_json_types_gets_the_arguments_and_its_own_defaults() -> None:
    assert run(takes_plain, {"party": 2, "place": "terrace"}).data == ["Plain", 2, [], "terrace", None]


def test_other_types_are_converted_in_a_blocking_handler_too() -> None:
    given = {"at": AT, "place": "terrace", "guest": {"party": 1}}
    assert run(takes_rich, given).data == [2026, Place.TERRACE, Plain(1)]


def test_a_strict_model_with_an_alias_accepts_what_its_schema_describes() -> None:
    assert run(takes_model, {"at": AT, "from": 3}).data == [datetime.fromisoformat(AT), 3]


def test_a_typed_dict_is_converted_only_if_json_lacks_one_of_its_types() -> None:
    assert typed(takes_dict) is takes_dict
    assert run(takes_rich_dict, {"at": AT}).data == datetime.fromisoformat(AT)


@pytest.mark.parametrize("handler", [untyped, bare, misses_a_type])
def test_a_handler_without_usable_types_is_not_wrapped(handler: Callable[..., Any]) -> None:
    assert typed(handler) is handler


def test_an_annotation_that_does_not_exist_at_run_time_is_named() -> None:
    assert handler_types(misses_a_type).unresolved == ("AbsentType",)
    assert handler_types(untyped).unresolved == ()


@pytest.mark.parametrize(
    ("handler", "given", "path", "said"),
    [
        (takes_model, {"at": AT, "from": 9}, "/", "from is at most 5"),
        (takes_plain, {"party": 13}, "/", "the restaurant is superstitious"),
        (takes_rich_dict, {"at": "yesterday"}, "/at", "Input should be a valid datetime"),
    ],
)
def test_a_rule_that_only_the_type_knows_refuses_the_call(
    handler: Callable[..., Any], given: dict[str, Any], path: str, said: str
) -> None:
    with pytest.raises(ToolError) as raised:
        run(handler, given)
    assert raised.value.type is ErrorType.VALIDATION
    assert raised.value.details is not None
    (error,) = raised.value.details["errors"]
    assert error["path"] == path
    assert error["message"].startswith(said)


def test_a_value_error_of_the_handler_itself_is_not_blamed_on_the_arguments() -> None:
    async def breaks(args: Plain, ctx: ToolContext) -> ToolResponse:
        raise ValueError("a bug")

    breaks.__annotations__["args"] = Plain
    with pytest.raises(ValueError, match="a bug"):
        run(breaks, {"party": 2})


def test_a_returned_model_becomes_json_under_its_aliases() -> None:
    assert run(returns_model, {"a": 1}) == {
        "table": 4, "price": "9.50", "bookedAt": "2026-05-01T00:00:00Z",
    }  # fmt: skip


def test_a_typed_handler_may_still_return_a_failure() -> None:
    assert run(returns_model, {}) == fail(ErrorType.CONFLICT, "The table is taken.")


def test_returned_dataclasses_become_json() -> None:
    assert run(returns_dataclasses, {}) == [{"party": 2, "names": [], "place": "inside", "note": None}]


def test_without_pydantic_a_type_that_needs_it_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    assert run(takes_plain, {"party": 2}).ok
    with pytest.raises(HandlerTypeError, match="Rich, which needs pydantic; add pydantic to the tool's"):
        typed(takes_rich)
