"""The settings of the capability `agents` and of the policy `task_consent`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jackfield.settings import Ge, Help, Le, Phrases, Unit

WORDS = (
    "research", "investigate", "look into", "looking into", "dig into", "find out", "in the background",
    "meanwhile", "on the side", "take your time", "report back", "write a report", "write me a report",
    "put together", "compile", "collect", "gather", "work through", "go through", "analyse", "analyze",
    "compare", "background task", "let me know when", "tell me when", "get back to me",
)  # fmt: skip
"""Words that ask for work that takes a while."""

NEGATIONS = (
    "not", "no", "never", "without", "don't", "dont", "doesn't", "didn't", "can't", "cannot", "won't",
    "shouldn't", "needn't", "stop", "cancel", "instead of", "rather than", "nothing",
)  # fmt: skip
"""A sentence with one of these asks for nothing."""


@dataclass(frozen=True, slots=True)
class AgentsSettings:
    """`[capabilities.agents]`"""

    steps: Annotated[
        int,
        Ge(2),
        Le(100),
        Help(
            "Maximum messages that an agent's model may write. Before the last one, it is asked for its "
            "report."
        ),
    ] = 20
    # An agent has to end before its tool times out, or its results are lost.
    seconds: Annotated[
        float,
        Ge(1),
        Le(290),
        Unit("seconds"),
        Help("Time limit for a task; the tool's own limit is 300 seconds."),
    ] = 280
    at_once: Annotated[int, Ge(1), Le(1000), Help("Maximum concurrent agents on one host.")] = 4
    per_user: Annotated[
        int,
        Ge(1),
        Le(1000),
        Help("Maximum concurrent agents per user across all hosts; without a user, per session."),
    ] = 2
    characters: Annotated[
        int,
        Ge(200),
        Le(20_000),
        Help("Maximum length of a report; a longer one is cut after a sentence and ends in `[...]`."),
    ] = 4000
    tools: Annotated[
        tuple[str, ...], Help("Ids of tools that agents may use in addition to read-only tools.")
    ] = ()


@dataclass(frozen=True, slots=True)
class TaskConsentSettings:
    """`[policies.task_consent]`"""

    words: Annotated[Phrases, Help("Words and phrases that ask for such work.")] = WORDS
    negations: Annotated[Phrases, Help("A sentence with one of these words or phrases is not a request.")] = (
        NEGATIONS
    )
