"""Assignment to arms: a pure function that is stable, balanced, and moves nobody who need not move."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.experiments.assignment import CONTROL, GROUPS, STEPS, arm_at, position
from jackfield.experiments.definition import Experiment, ExperimentsError, ExperimentSettings, ExperimentsFile
from jackfield.toolsets import Toolset

names = st.text(min_size=1, max_size=40)


@st.composite
def shares(draw: st.DrawFn) -> tuple[dict[str, int], int]:
    """The steps of up to three variants, and of control."""
    cuts = sorted(draw(st.lists(st.integers(0, STEPS), min_size=4, max_size=4)))
    sizes = [cuts[0], cuts[1] - cuts[0], cuts[2] - cuts[1]]
    return dict(zip("abc", sizes, strict=True)), cuts[3] - cuts[2]


def experiment(variant: float = 50, control: float = 50, **fields: Any) -> Experiment:
    return Experiment("speed", ExperimentSettings("look", {"fast": variant}, control, **fields))


@settings(deadline=None)
@given(names, names)
def test_the_position_depends_only_on_the_salt_and_the_subject(salt: str, subject: str) -> None:
    first, again = position(salt, subject), position(salt, subject)
    assert first == again
    assert 0 <= first.step < STEPS
    assert 0 <= first.group < GROUPS


def test_another_process_finds_the_same_positions() -> None:
    subjects = [f"user {number}" for number in range(50)]
    program = (
        "import json, sys\n"
        "from jackfield.experiments.assignment import position\n"
        "print(json.dumps([position('salt', each) for each in json.loads(sys.argv[1])]))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, json.dumps(subjects)], capture_output=True, check=True
    ).stdout
    assert json.loads(printed) == [list(position("salt", each)) for each in subjects]


@settings(max_examples=25, deadline=None)
@given(shares())
def test_every_arm_has_exactly_its_share_of_the_steps(given_shares: tuple[dict[str, int], int]) -> None:
    variants, control = given_shares
    found = Counter(arm_at(step, variants, control) for step in range(STEPS))
    assert found[CONTROL] == control
    assert {name: found[name] for name in variants} == variants
    assert found[None] == STEPS - control - sum(variants.values())


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=20), st.sampled_from([1, 10, 50]))
def test_subjects_are_spread_evenly_over_arms_and_groups(salt: str, percent: int) -> None:
    count = 4000
    found = [position(salt, f"user-{number}") for number in range(count)]
    hits = sum(each.step < percent * 100 for each in found)
    share = percent / 100
    # Six standard deviations: a uniform hash fails this once in a billion runs.
    assert abs(hits - count * share) < 6 * (count * share * (1 - share)) ** 0.5
    groups = Counter(each.group for each in found)
    expected = count / GROUPS
    chi_square = sum((groups[number] - expected) ** 2 / expected for number in range(GROUPS))
    assert chi_square < GROUPS - 1 + 6 * (2 * (GROUPS - 1)) ** 0.5


@settings(deadline=None)
@given(names, names, names)
def test_another_salt_assigns_independently(subject: str, one: str, other: str) -> None:
    if one != other:
        # Equal positions are possible, but not for many subjects at once.
        same = sum(position(one, f"{subject}{n}") == position(other, f"{subject}{n}") for n in range(20))
        assert same < 3


@settings(deadline=None)
@given(
    st.integers(0, STEPS - 1), st.integers(0, STEPS), st.integers(0, STEPS), st.integers(0, STEPS),
    st.integers(0, STEPS),
)  # fmt: skip
def test_growing_shares_move_nobody_between_arms(
    step: int, variant: int, control: int, more: int, more_control: int
) -> None:
    variant, control = min(variant, STEPS), min(control, STEPS - min(variant, STEPS))
    free = STEPS - variant - control
    more = min(more, free)
    more_control = min(more_control, free - more)
    before = arm_at(step, {"fast": variant}, control)
    after = arm_at(step, {"fast": variant + more}, control + more_control)
    assert before in (None, after)


def test_sessions_of_a_user_or_an_organisation_have_the_same_arm() -> None:
    by_user, by_organisation = experiment(), experiment(by="organisation")
    assert by_user.assign("ada", "acme", 1) == by_user.assign("ada", "other", 1)
    assert by_organisation.assign("ada", "acme", 1) == by_organisation.assign("bob", "acme", 1)
    assert by_organisation.assign("ada", None, 1) is None
    assert by_user.assign(None, "acme", 1) is None


def test_the_key_changes_with_what_decides_who_gets_what_and_only_with_that() -> None:
    same = experiment(description="Another text.", state="aborted", reason="why")
    assert same.key == experiment().key
    for other in (experiment(40), experiment(salt="x"), experiment(by="organisation")):
        assert other.key != experiment().key


def test_a_saved_toolset_keeps_its_assignments() -> None:
    assignment = experiment(100, 0).assign("ada", None, 7)
    assert assignment is not None
    toolset = Toolset("", None, {"look": "fast"}, {"look": assignment})
    again = Toolset.from_wire(json.loads(json.dumps(toolset.to_wire())))
    assert again.assignments == {"look": assignment}
    assert again.key == toolset.key
    assert again.key != Toolset("", None, {"look": "fast"}).key


def document(**fields: Any) -> bytes:
    described = {"tool": "look", "variants": {"fast": 50}, "control": 50, **fields}
    return json.dumps({"version": 1, "experiments": {"speed": described}}).encode()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"variants": {"fast": 51}}, "the shares add up to 101 percent"),
        ({"variants": {"fast": 0.001}}, "expected at most two decimals"),
        ({"variants": {"control": 50}}, "'control' stands for the unchanged tool"),
        ({"variants": {}}, "expected at least one variant"),
        ({"shadow": True}, "a shadow has one variant and no control"),
        ({"state": "promoted"}, "required for the state `promoted`"),
        ({"state": "promoted", "winner": "slow"}, "'slow' is not one of the variants"),
        ({"shares": 1}, "unknown setting"),
        ({"guard": {"max_error_percent": 101}}, "guard max_error_percent"),
    ],
)
def test_a_fault_in_the_file_is_reported_with_its_place(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ExperimentsError, match=r"experiments\.speed") as error:
        ExperimentsFile.parse(document(**fields), "experiments.json")
    assert fault in str(error.value)


def test_two_experiments_on_one_tool_are_refused_unless_one_is_over() -> None:
    described = {"tool": "look", "variants": {"fast": 10}}
    both = {"version": 1, "experiments": {"one": described, "two": described}}
    with pytest.raises(ExperimentsError, match="one uses look too"):
        ExperimentsFile.parse(json.dumps(both).encode(), "experiments.json")
    both["experiments"] = {"one": {**described, "state": "aborted"}, "two": described}
    assert len(ExperimentsFile.parse(json.dumps(both).encode(), "experiments.json").experiments) == 2


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"version": 1, "version": 2}', b'{"version": 0}', b"\xff"])
def test_what_is_not_a_version_of_experiments_is_refused(data: bytes) -> None:
    with pytest.raises(ExperimentsError, match=r"experiments\.json"):
        ExperimentsFile.parse(data, "experiments.json")


def test_a_decision_is_the_next_version_and_changes_nothing_else() -> None:
    first = ExperimentsFile.parse(document(salt="s"), "experiments.json")
    promoted = ExperimentsFile.parse(first.decided("speed", "promoted", "faster", "fast"), "next")
    assert promoted.version == 2
    found = promoted.experiments["speed"].settings
    assert (found.state, found.winner, found.reason, found.salt) == ("promoted", "fast", "faster", "s")
    aborted = ExperimentsFile.parse(promoted.decided("speed", "aborted", ""), "next")
    assert aborted.version == 3
    assert aborted.experiments["speed"].settings.winner == ""
    assert aborted.experiments["speed"].key == first.experiments["speed"].key
