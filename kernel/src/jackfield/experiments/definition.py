"""The experiments file: a version, and the experiments with their shares, state and guard."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import orjson

from jackfield import strict_json
from jackfield.contract.snapshot import implementation_name
from jackfield.experiments.assignment import CONTROL, STEPS, Assignment, arm_at, position
from jackfield.settings import Ge, Gt, Help, Le, MaxLen, NonEmpty, SettingsError, Unit, parse_settings
from jackfield.settings.toolset_settings import SettingName

if TYPE_CHECKING:
    from jackfield.contract.snapshot import Snapshot

MAX_BYTES = 1024 * 1024
"""The maximum size of the file."""

Percent = Annotated[float, Ge(0), Le(100), Unit("percent")]


class ExperimentsError(Exception):
    """An experiments file cannot be used; the message says why and how to fix it."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The bounds at which an experiment is aborted; 0 means no bound."""

    min_calls: Annotated[int, Ge(1), Help("How many calls of an arm are needed before the bounds apply.")] = (
        100
    )
    max_error_percent: Annotated[Percent, Help("The bound on the share of failed calls; 0 means none.")] = 0.0
    max_p95_ms: Annotated[
        float, Ge(0), Unit("ms"), Help("The bound on the 95th percentile of the latency; 0 means none.")
    ] = 0.0
    window_seconds: Annotated[
        float,
        Gt(0),
        Unit("seconds"),
        Help(
            "The length of the window. The bounds apply to all calls so far, and separately to the calls in "
            "the most recent window of this length."
        ),
    ] = 600.0

    @property
    def is_bounded(self) -> bool:
        """True if there is a bound to guard."""
        return bool(self.max_error_percent or self.max_p95_ms)


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """One experiment in the file: its tool, its shares and its state."""

    tool: Annotated[NonEmpty, Help("The id of the tool.")]
    variants: Annotated[
        Mapping[NonEmpty, Percent],
        Help("The share of each variant in percent, in steps of 0.01; for a shadow, the share to compare."),
    ]
    control: Annotated[Percent, Help("The share that gets the unchanged tool, for comparison.")] = 0.0
    by: Annotated[
        Literal["user", "organisation"],
        Help("The unit of assignment: all sessions of a user, or of an organisation, have the same arm."),
    ] = "user"
    shadow: Annotated[
        bool,
        Help("Run the variant alongside the tool and compare the answers; only for tools that do not write."),
    ] = False
    state: Annotated[
        Literal["running", "promoted", "aborted"],
        Help("`promoted` gives every new session the variant `winner`; `aborted` gives it to none."),
    ] = "running"
    winner: Annotated[str, Help("The variant that was promoted.")] = ""
    reason: Annotated[str, MaxLen(500), Help("Why the variant was promoted or the experiment aborted.")] = ""
    description: Annotated[str, MaxLen(500), Help("A description of the experiment.")] = ""
    salt: Annotated[
        str,
        MaxLen(64),
        Help("A different salt reassigns all subjects.", default="the name of the experiment"),
    ] = ""
    guard: Annotated[GuardSettings, Help("The bounds at which the experiment is aborted automatically.")] = (
        field(default_factory=GuardSettings)
    )

    def __post_init__(self) -> None:
        """Check that the shares and the state fit together."""
        if not self.variants:
            raise ValueError("variants: expected at least one variant")
        if CONTROL in self.variants:
            raise ValueError(f"variants: {CONTROL!r} stands for the unchanged tool; use the key `control`")
        shares = {
            **{f"variants.{name}": each for name, each in self.variants.items()},
            "control": self.control,
        }
        for name, share in shares.items():
            if abs(share * STEPS / 100 - _steps(share)) > 1e-6:
                raise ValueError(f"{name}: expected at most two decimals, got {share:g}")
        if sum(map(_steps, shares.values())) > STEPS:
            raise ValueError(
                f"variants: the shares add up to {sum(shares.values()):g} percent; the maximum is 100"
            )
        if self.shadow and (len(self.variants) > 1 or self.control or self.state == "promoted"):
            raise ValueError("shadow: a shadow has one variant and no control, and cannot be promoted")
        if (self.state == "promoted") != bool(self.winner):
            raise ValueError("winner: required for the state `promoted`, and not allowed in any other state")
        if self.winner and self.winner not in self.variants:
            raise ValueError(f"winner: {self.winner!r} is not one of the variants")


class Experiment:
    """An experiment with its name; its attributes do not change."""

    __slots__ = ("_control", "_variants", "arms", "key", "name", "settings", "tool")

    def __init__(self, name: str, settings: ExperimentSettings) -> None:
        self.name = name
        self.settings = settings
        self.tool = settings.tool
        self.arms = (CONTROL, *settings.variants)
        """The names of the arms."""
        self._variants = {name: _steps(each) for name, each in settings.variants.items()}
        self._control = _steps(settings.control)
        shares, salt = list(self._variants.items()), settings.salt
        decides = [self.tool, shares, self._control, settings.by, settings.shadow, salt]
        self.key = f"{name}.{hashlib.sha256(orjson.dumps(decides)).hexdigest()[:12]}"
        """Identifies the definition: the name, and a hash of everything that determines the assignments."""

    def assign(self, user: str | None, organisation: str | None, version: int) -> Assignment | None:
        """Return the assignment of a new session; None if its subject is not part of the experiment."""
        settings = self.settings
        subject = user if settings.by == "user" else organisation
        if not subject:
            return None
        step, group = position(settings.salt or self.name, subject)
        arm = arm_at(step, self._variants, self._control)
        if arm is None:
            return None
        return Assignment(self.name, arm, self.key, version, group, settings.shadow)


def _steps(percent: float) -> int:
    return round(percent * STEPS / 100)


@dataclass(frozen=True, slots=True)
class ExperimentsDocument:
    """The members of the experiments file."""

    version: Annotated[int, Ge(1), Help("Increases with every change.")]
    experiments: Annotated[
        Mapping[SettingName, ExperimentSettings], MaxLen(100), Help("The experiments, by name.")
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExperimentsFile:
    """One version of the experiments; it never changes."""

    version: int
    experiments: Mapping[str, Experiment]
    data: bytes
    """The content of the file."""

    @classmethod
    def parse(cls, data: bytes, where: str) -> ExperimentsFile:
        """Parse the content of a file; raises `ExperimentsError` with a line for each fault."""
        if len(data) > MAX_BYTES:
            raise ExperimentsError(f"{where}: larger than {MAX_BYTES:,} bytes")
        try:
            document = strict_json.loads(data.decode("utf-8"))
            if not isinstance(document, dict):
                raise ExperimentsError(f"{where}: not a JSON object")
            read = parse_settings(ExperimentsDocument, document, where)
        except UnicodeDecodeError:
            raise ExperimentsError(f"{where}: not UTF-8") from None
        except strict_json.StrictJsonError as error:
            fault = error.faults[0]
            raise ExperimentsError(f"{where}: not valid JSON ({fault.where}: {fault.message})") from None
        except SettingsError as error:
            raise ExperimentsError(str(error)) from None
        named = {name: Experiment(name, each) for name, each in read.experiments.items()}
        owners: dict[str, str] = {}
        for name, each in named.items():
            if each.settings.state != "aborted" and owners.setdefault(each.tool, name) != name:
                other = owners[each.tool]
                raise ExperimentsError(
                    f"{where} experiments.{name}: {other} uses {each.tool} too; abort or remove one"
                )
        return cls(read.version, named, data)

    def decided(self, name: str, state: str, reason: str, winner: str = "") -> bytes:
        """Return the next version, in which an experiment is promoted or aborted."""
        document = orjson.loads(self.data)
        experiment = {**document["experiments"][name], "state": state, "winner": winner, "reason": reason}
        document["experiments"][name] = {
            key: value for key, value in experiment.items() if value or key not in ("winner", "reason")
        }
        document["version"] = self.version + 1
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def faults(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """Yield the experiments that a registry does not allow, each with the reason."""
        for name, experiment in self.experiments.items():
            if experiment.settings.state != "aborted" and (fault := _fault(experiment, snapshot)):
                yield name, fault


def _fault(experiment: Experiment, snapshot: Snapshot) -> str:
    tool = snapshot.tools.get(experiment.tool)
    if tool is None:
        return f"there is no tool {experiment.tool!r}; `jackfield tools` lists the tools"
    if experiment.settings.shadow and tool.manifest.writes:
        return f"{experiment.tool} writes; only a tool that reads can be shadowed"
    for variant in experiment.settings.variants:
        if implementation_name(experiment.tool, variant) not in snapshot.variants:
            return f"{experiment.tool} has no variant {variant!r}"
    return ""
