"""The settings of every policy that has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jackfield.ledger import OUTCOME_SECONDS
from jackfield.settings import Ge, Help, Unit

_Count = Annotated[int, Ge(0)]
_Seconds = Annotated[float, Ge(0), Unit("seconds")]
_Milliseconds = Annotated[float, Ge(0), Unit("milliseconds")]


@dataclass(frozen=True, slots=True)
class DuplicatesSettings:
    """`[policies.duplicates]`"""

    remember_seconds: Annotated[
        _Seconds,
        Help(
            "How long the answer to a call is remembered. Choose a longer time than any tool takes; "
            "otherwise a repeated read runs in parallel with the first. A call that needed approval is "
            "remembered for at least two days after its confirmation expired, and a call in doubt until an "
            "operator settles it."
        ),
    ] = OUTCOME_SECONDS


@dataclass(frozen=True, slots=True)
class BudgetsSettings:
    """`[policies.budgets]`"""

    voice_calls: Annotated[_Count, Help("Maximum calls per turn in a voice session; 0 means no limit.")] = 3
    voice_retrievals: Annotated[
        _Count, Help("Maximum calls to retrieval tools per turn in a voice session; 0 means no limit.")
    ] = 2
    voice_tool_ms: Annotated[
        _Milliseconds, Help("Maximum total tool time per turn in a voice session; 0 means no limit.")
    ] = 1500
    text_calls: Annotated[_Count, Help("Maximum calls per turn in a text session; 0 means no limit.")] = 0
    text_retrievals: Annotated[
        _Count, Help("Maximum calls to retrieval tools per turn in a text session; 0 means no limit.")
    ] = 5
    text_tool_ms: Annotated[
        _Milliseconds, Help("Maximum total tool time per turn in a text session; 0 means no limit.")
    ] = 0


@dataclass(frozen=True, slots=True)
class LoopsSettings:
    """`[policies.loops]`"""

    identical_calls: Annotated[
        _Count,
        Help(
            "Reject the Nth identical call in a turn, where N is this number (at least 2); 0 means no limit."
        ),
    ] = 3
    empty_results: Annotated[
        _Count,
        Help(
            "Report an error when a tool returns its Nth empty result in a turn, where N is this number; "
            "0 means no limit."
        ),
    ] = 2

    def __post_init__(self) -> None:
        if self.identical_calls == 1:
            raise ValueError(
                "identical_calls: 1 would reject every call; use 2 to reject the first repetition"
            )


@dataclass(frozen=True, slots=True)
class ClampingSettings:
    """`[policies.clamping]`"""

    voice_top_k: Annotated[_Count, Help("Maximum number of results in a voice session.")] = 3


@dataclass(frozen=True, slots=True)
class ConfirmationSettings:
    """`[policies.confirmation]`"""

    expiry_seconds: Annotated[_Seconds, Help("How long the user has to decide.")] = 300
    trusted: Annotated[
        tuple[str, ...],
        Help('Ids of tools with `requiresConfirmation: "policy"` that run without asking the user.'),
    ] = ()


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """`[policies.recovery]`"""

    pause_ms: Annotated[_Milliseconds, Help("Pause before the retry.")] = 250
