"""The settings reader: what it accepts, and the faults it reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jackfield.settings import (
    Bytes,
    EnvironmentVariable,
    Format,
    Ge,
    Gt,
    Help,
    HttpUrl,
    Le,
    Lt,
    MaxLen,
    MinLen,
    NonEmpty,
    NoSettings,
    Phrases,
    Seconds,
    Secret,
    SettingsError,
    SettingsFaults,
    Unit,
    describe_settings,
    merge_tables,
    parse_settings,
    read_environment,
    read_settings,
)

PLACE = "[things.one]"


def _even(text: str) -> int:
    number = int(text)
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


@dataclass(frozen=True, slots=True)
class Inner:
    """A nested table."""

    name: NonEmpty
    size: Annotated[int, Ge(0)] = 1


@dataclass(frozen=True, slots=True)
class Everything:
    """One field of each kind."""

    on: Annotated[bool, Help("Whether it is on.")] = False
    count: Annotated[int, Ge(0), Le(100)] = 3
    above: Annotated[int, Gt(0), Lt(10)] = 1
    ratio: float = 0.5
    wait: Seconds = 1.0
    limit: Bytes = 1024
    tokens: Annotated[int, Ge(0), Unit("tokens")] = 0
    text: Annotated[str, MaxLen(5)] = ""
    path: Path = Path("here")
    mode: Literal["a", "b"] = "a"
    words: tuple[str, ...] = ()
    numbers: Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1), MaxLen(3)] = (1,)
    url: HttpUrl | None = None
    even: Annotated[int, Format("an even number", _even)] = 2
    key_env: EnvironmentVariable | None = None
    secret: Annotated[str, MaxLen(3), Secret()] = ""
    phrases: Phrases = ("please",)
    who: Literal["everybody"] | tuple[NonEmpty, ...] = "everybody"
    price: Annotated[float, Ge(0)] | Mapping[Literal["x", "y"], float] = 0.0
    inner: Inner | None = None
    by_name: Mapping[Annotated[str, MinLen(2)], Inner] = field(default_factory=dict)


def faults_of(**table: Any) -> list[str]:
    faults = SettingsFaults()
    read_settings(Everything, table, PLACE, faults)
    return str(faults).splitlines()


def fault_of(**table: Any) -> str:
    (fault,) = faults_of(**table)
    return fault.removeprefix(f"{PLACE} ")


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"cont": 1}, "cont: unknown setting; did you mean 'count'?"),
        ({"on": 1}, "on: expected true or false, got 1"),
        ({"on": "true"}, "on: expected true or false, got 'true'"),
        ({"count": "four"}, "count: expected an integer from 0 to 100, got 'four'"),
        ({"count": "4"}, "count: expected an integer from 0 to 100, got '4'"),
        ({"count": True}, "count: expected an integer from 0 to 100, got true"),
        ({"count": 3.0}, "count: expected an integer from 0 to 100, got 3.0"),
        ({"count": 101}, "count: expected an integer from 0 to 100, got 101"),
        ({"count": None}, "count: expected an integer from 0 to 100, got None"),
        ({"above": 0}, "above: expected an integer above 0 and below 10, got 0"),
        ({"ratio": math.nan}, "ratio: expected a number, got nan"),
        ({"ratio": math.inf}, "ratio: expected a number, got inf"),
        ({"ratio": 10**400}, f"ratio: expected a number, got {'1' + '0' * 59}..."),
        ({"wait": 0}, "wait: expected a number of seconds above 0, got 0"),
        ({"limit": 0.5}, "limit: expected an integer number of bytes above 0, got 0.5"),
        ({"tokens": -1}, "tokens: expected an integer number of tokens, at least 0, got -1"),
        ({"text": "toolong"}, "text: expected a string of at most 5 characters, got 'toolong'"),
        ({"path": ""}, "path: expected a path, got ''"),
        (
            {"path": "~nobody-of-this-name/x"},
            "path: expected a path, got '~nobody-of-this-name/x': there is no such home directory",
        ),
        ({"mode": "c"}, "mode: expected one of 'a', 'b', got 'c'"),
        ({"words": "x"}, "words: expected a list of strings, got 'x'; write ['x']"),
        ({"words": ["x", 1]}, "words[1]: expected a string, got 1"),
        ({"numbers": []}, "numbers: expected a non-empty list of at most 3 entries of integers, got []"),
        ({"numbers": [1, -1]}, "numbers[1]: expected an integer of at least 0, got -1"),
        ({"url": "ftp://x"}, "url: expected a URL that begins with http:// or https://, got 'ftp://x'"),
        (
            {"url": "ftp://ann:hunter2@x"},
            "url: expected a URL that begins with http:// or https://, got 'ftp://***@x'",
        ),
        ({"even": "3"}, "even: 3 is odd"),
        ({"even": 4}, "even: expected an even number, got 4"),
        ({"key_env": "sk-1"}, "key_env: expected the name of an environment variable, which holds the secret "
         "itself"),
        ({"key": "sk-1"}, "key: unknown setting; a secret does not belong in this file: put it into an "
         "environment variable, and set key_env to the name of that variable"),
        ({"secret": "hunter2"}, "secret: expected a string of at most 3 characters"),
        ({"phrases": [" "]}, "phrases[0]: expected a word or phrase, got ' '"),
        ({"who": "nobody"}, "who: expected one of 'everybody' or a list of strings, got 'nobody'"),
        ({"who": [""]}, "who[0]: expected a non-empty string, got ''"),
        ({"price": "x"}, "price: expected a number of at least 0 or a table, got 'x'"),
        ({"inner": 1}, "inner: expected a table, got 1"),
    ],
)  # fmt: skip
def test_a_fault_names_place_problem_and_fix(table: dict[str, Any], fault: str) -> None:
    assert fault_of(**table) == fault


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"inner": {}}, "[things.one.inner] name: missing; expected a non-empty string"),
        ({"inner": {"name": "x", "siz": 1}}, "[things.one.inner] siz: unknown setting; did you mean 'size'?"),
        (
            {"by_name": {"ann": {"name": "x", "size": -1}}},
            "[things.one.by_name.ann] size: expected an integer of at least 0, got -1",
        ),
        (
            {"by_name": {"a.b": {"name": ""}}},
            "[things.one.by_name.\"a.b\"] name: expected a non-empty string, got ''",
        ),
        (
            {"by_name": {"x": {"name": "x"}}},
            "[things.one.by_name] x: expected a string of at least 2 characters, got 'x'",
        ),
        ({"by_name": {"ann": 1}}, "[things.one.by_name] ann: expected a table, got 1"),
        ({"price": {"z": 1}}, "[things.one.price] z: expected one of 'x', 'y', got 'z'"),
        ({"price": {"x": "1"}}, "[things.one.price] x: expected a number, got '1'"),
    ],
)
def test_a_fault_in_a_nested_table_names_that_table(table: dict[str, Any], fault: str) -> None:
    assert faults_of(**table) == [fault]


def test_every_fault_of_a_table_is_reported_in_order() -> None:
    known = ", ".join(each.name for each in fields(Everything))
    assert faults_of(zzz=1, mode="c", words=[1, 2], on=1, count="x") == [
        f"{PLACE} zzz: unknown setting; known settings: {known}",
        f"{PLACE} on: expected true or false, got 1",
        f"{PLACE} count: expected an integer from 0 to 100, got 'x'",
        f"{PLACE} mode: expected one of 'a', 'b', got 'c'",
        f"{PLACE} words[0]: expected a string, got 1",
        f"{PLACE} words[1]: expected a string, got 2",
    ]


def test_faulty_settings_get_their_defaults_and_the_others_their_values() -> None:
    faults = SettingsFaults()
    read = read_settings(Everything, {"count": "x", "mode": "b", "zzz": 1}, PLACE, faults)
    assert read == Everything(mode="b")
    assert len(faults) == 2


def test_an_offer_without_settings_rejects_any_setting() -> None:
    with pytest.raises(SettingsError, match="x: unknown setting; this table has no settings"):
        parse_settings(NoSettings, {"x": 1}, PLACE)


def test_a_value_is_shown_on_one_short_line() -> None:
    assert fault_of(count="line\n" * 100).count("\n") == 0
    assert len(fault_of(count="x" * 10_000)) < 120
    assert fault_of(count=16**5000).endswith("got a number that is too long")


def test_values_are_converted_to_the_types_of_their_fields() -> None:
    read = parse_settings(
        Everything,
        {"ratio": 1, "path": "~", "words": ["a"], "even": "4", "phrases": ["BITTE"], "url": None},
        PLACE,
    )
    assert (read.ratio, read.path, read.words) == (1.0, Path.home(), ("a",))
    assert (read.even, read.phrases, read.url) == (4, ("bitte",), None)


@dataclass(frozen=True, slots=True)
class Ruled:
    """Fields with a cross-field rule."""

    low: int = 0
    high: int = 10
    inner: Inner = field(default_factory=lambda: Inner("x"))

    def __post_init__(self) -> None:
        faults = []
        if self.low > self.high:
            faults.append("low: expected at most high")
        if self.inner.size > self.high:
            faults.append("inner.size: expected at most high")
        if self.high == 13:
            faults.append("thirteen is unlucky")
        if faults:
            raise ValueError("\n".join(faults))


def test_cross_field_rules_are_reported_for_the_fields_they_name() -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(Ruled, {"low": 14, "high": 13, "inner": {"name": "x", "size": 20}}, PLACE)
    assert str(raised.value).splitlines() == [
        f"{PLACE} low: expected at most high",
        "[things.one.inner] size: expected at most high",
        f"{PLACE}: thirteen is unlucky",
    ]


def test_cross_field_rules_are_not_checked_while_a_field_is_faulty() -> None:
    faults = SettingsFaults()
    assert read_settings(Ruled, {"low": 11, "high": "x"}, PLACE, faults) is None
    assert str(faults) == f"{PLACE} high: expected an integer, got 'x'"


@pytest.mark.parametrize("wrong", [set[str], tuple[str, int], list[str], dict[str, set[str]], object])
def test_an_unsupported_type_is_reported_with_its_field(wrong: Any) -> None:
    declaration: Any = dataclass(
        type("Odd", (), {"__annotations__": {"thing": wrong}, "__module__": __name__})
    )
    with pytest.raises(TypeError, match=r"Odd\.thing: .* is not a valid type for a setting; use bool, int"):
        describe_settings(declaration)


def test_a_setting_is_described_with_its_help_and_default() -> None:
    described = {each.name: each for each in describe_settings(Everything)}
    assert described["on"].help == "Whether it is on."
    assert (described["count"].expected, described["count"].default) == ("an integer from 0 to 100", 3)
    assert (described["inner"].table, described["inner"].is_named) == (Inner, False)
    assert (described["by_name"].table, described["by_name"].is_named) == (Inner, True)


# Environment variables


def environment(environ: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    faults = SettingsFaults()
    table, origins = read_environment(Everything, "THING_", environ, faults)
    read_settings(Everything, table, PLACE, faults, origins=origins)
    return table, str(faults).splitlines()


def test_environment_variables_are_converted_to_the_types_of_their_settings() -> None:
    table, faults = environment(
        {
            "THING_ON": "yes",
            "THING_COUNT": "7",
            "thing_ratio": "0.25",
            "THING_WORDS": "a, b,,c",
            "THING_NUMBERS": "[1, 2]",
            "THING_INNER__NAME": "ann",
            "THING_BY_NAME__BEN__NAME": "ben",
            "THING_BY_NAME__BEN__SIZE": "3",
            "THING_MODE": "",
            "OTHER_COUNT": "x",
        }
    )
    assert faults == []
    assert table == {
        "on": True,
        "count": 7,
        "ratio": 0.25,
        "words": ["a", "b", "c"],
        "numbers": [1, 2],
        "inner": {"name": "ann"},
        "by_name": {"ben": {"name": "ben", "size": 3}},
    }


def test_a_fault_names_its_environment_variable() -> None:
    _, faults = environment(
        {
            "THING_COUNT": "many",
            "THING_CONT": "1",
            "THING_COUNT__X": "1",
            "THING_WORDS": "[1]",
            "THING_INNER": '{"name": 1}',
            "THING_BY_NAME__BEN__SIZE": "x",
        }
    )
    assert faults == [
        "THING_CONT: unknown setting; did you mean 'THING_COUNT'?",
        "THING_COUNT__X: unknown setting; did you mean 'THING_COUNT'?",
        "THING_COUNT: expected an integer from 0 to 100, got 'many'",
        "THING_WORDS[0]: expected a string, got 1",
        "THING_INNER name: expected a non-empty string, got 1",
        "[things.one.by_name.ben] name: missing; expected a non-empty string",
        "THING_BY_NAME__BEN__SIZE: expected an integer of at least 0, got 'x'",
    ]


def test_tables_are_merged_member_by_member() -> None:
    merged = merge_tables({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4}, "e": 5})
    assert merged == {"a": 1, "b": {"c": 4, "d": 3}, "e": 5}


# Properties


@dataclass(frozen=True, slots=True)
class Plain:
    """Settings that the reader returns unchanged."""

    on: bool = False
    count: Annotated[int, Ge(0), Le(100)] = 3
    ratio: Annotated[float, Gt(0)] = 0.5
    text: Annotated[str, MinLen(1), MaxLen(8)] = "x"
    mode: Literal["a", "b", "c"] = "a"
    words: Annotated[tuple[NonEmpty, ...], MaxLen(4)] = ()
    sizes: Mapping[NonEmpty, Annotated[int, Ge(0)]] = field(default_factory=dict)
    inner: Inner | None = None


_VALID: dict[str, st.SearchStrategy[Any]] = {
    "on": st.booleans(),
    "count": st.integers(0, 100),
    "ratio": st.floats(1e-6, 1e6),
    "text": st.text(min_size=1, max_size=8),
    "mode": st.sampled_from(["a", "b", "c"]),
    "words": st.lists(st.text(min_size=1), max_size=4),
    "sizes": st.dictionaries(st.text(min_size=1), st.integers(min_value=0), max_size=3),
    "inner": st.fixed_dictionaries({"name": st.text(min_size=1), "size": st.integers(min_value=0)}),
}
_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
TABLES = st.fixed_dictionaries({}, optional=_VALID)


def as_written(value: Any) -> Any:
    if isinstance(value, Inner):
        return {"name": value.name, "size": value.size}
    return list(value) if isinstance(value, tuple) else value


@given(TABLES)
def test_a_valid_table_is_read_unchanged_and_without_faults(table: dict[str, Any]) -> None:
    faults = SettingsFaults()
    read = read_settings(Plain, table, PLACE, faults)
    assert not faults
    assert {name: as_written(getattr(read, name)) for name in table} == table
    untouched = {each.name for each in fields(Plain)} - table.keys()
    assert {name: getattr(read, name) for name in untouched} == {
        name: getattr(Plain(), name) for name in untouched
    }


@given(TABLES, st.sampled_from(sorted(_VALID)), _ANYTHING)
def test_a_value_of_the_wrong_type_is_one_fault_that_names_the_setting(
    table: dict[str, Any], name: str, wrong: Any
) -> None:
    kinds: dict[str, Any] = {
        "on": bool,
        "count": int,
        "ratio": (int, float),
        "text": str,
        "mode": str,
        "words": list,
        "sizes": dict,
        "inner": dict,
    }
    is_number = name in ("count", "ratio") and isinstance(wrong, bool)
    assume(is_number or not isinstance(wrong, kinds[name]))
    assume(not (name == "inner" and wrong is None))
    (fault,) = _faults({**table, name: wrong})
    assert fault.startswith(f"{PLACE} {name}: expected ")


@given(TABLES, st.data())
def test_a_value_out_of_range_is_one_fault_that_names_the_setting(
    table: dict[str, Any], data: st.DataObject
) -> None:
    name, wrong, place = data.draw(
        st.sampled_from(
            [
                ("count", 101, f"{PLACE} count"),
                ("count", -1, f"{PLACE} count"),
                ("ratio", 0, f"{PLACE} ratio"),
                ("text", "", f"{PLACE} text"),
                ("text", "x" * 9, f"{PLACE} text"),
                ("mode", "d", f"{PLACE} mode"),
                ("words", ["a", ""], f"{PLACE} words[1]"),
                ("words", ["a"] * 5, f"{PLACE} words"),
                ("sizes", {"a": -1}, "[things.one.sizes] a"),
                ("inner", {"name": "x", "size": -1}, "[things.one.inner] size"),
                ("inner", {"size": 1}, "[things.one.inner] name"),
            ]
        )
    )
    (fault,) = _faults({**table, name: wrong})
    assert fault.startswith(f"{place}: ")


@given(TABLES, st.text(min_size=1, max_size=20))
def test_an_unknown_name_is_one_fault_that_names_it(table: dict[str, Any], name: str) -> None:
    assume(name not in _VALID)
    (fault,) = _faults({**table, name: 1})
    assert ": unknown setting; " in fault
    assert fault.isprintable()


def _faults(table: dict[str, Any]) -> list[str]:
    faults = SettingsFaults()
    read_settings(Plain, table, PLACE, faults)
    return str(faults).split("\n")
