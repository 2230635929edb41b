"""The prompt of a session: a fixed part within a token budget, then the context of the session.

The fixed part (conduct, tools, working instructions) depends only on the registry, the mode, the prompt
files, the form of the declarations and the budget. All sessions of a deployment start with the same bytes, so
that providers and local servers can use their prefix caches. Time, user and time zone come last.

Declarations and one-line summaries are always sent. Guides fill the rest of the budget: those of actions
first, because a wrong call to one costs most, then retrieval, then utility; within a category the shortest
first, so that as many as possible fit. Usage statistics are ignored, because they would change the prefix
between hosts and over time. A guide that does not fit is omitted; the model gets it with the tool's
first error (`guides.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from jackfield.contract.context import Mode
from jackfield.contract.snapshot import FrozenTool
from jackfield.settings import Settings, SettingsError
from jackfield.transport.protocol import Transport

CHARACTERS_PER_TOKEN = 4

PROMPT_TOKENS = 8_000
"""The budget if neither the settings nor the transport set one."""

_CONTEXT_TOKENS = 100
"""Reserved for the context of the session."""

_CATEGORIES = ("action", "retrieval", "utility")
"""Tool categories, in the order in which their guides are added."""

_IN_SHORT = (
    "These tools are described in one line each. The first time a call to one of them fails, the error "
    "includes its guide."
)

_LOOP: dict[Mode, str] = {
    "voice": """\
1. Missing something? Search, at most twice in a turn, and fetch a record by its id if you know it.
2. Answer from what was found, and name the source.
3. To act, look first, say what you found, and act when the user has decided.
4. If a call is rejected or fails, say so and continue; do not repeat it.""",
    "text": """\
1. Missing something? Search with filters, at most five times in a turn; look at the best one or two by id.
2. Answer from what was found, and cite it.
3. To act, look first, discuss what you found, and act when the user has decided.
4. A call that needs approval is pending until a result says otherwise.
5. If a call is rejected or fails, follow the suggestion or say what is missing; never repeat it.""",
}


_OURS = Path(__file__).parent / "prompts"


def folders(own: Path | None) -> list[Path]:
    """Return the folders of prompts: the deployment's own, then the shipped one."""
    if own is not None and not own.is_dir():
        raise SettingsError(f"prompts: there is no directory {str(own)!r}; create it or correct the setting")
    return [_OURS] if own is None else [own, _OURS]


def estimated_tokens(text: str) -> int:
    """Return the approximate number of tokens in a text, at four characters each."""
    return len(text) // CHARACTERS_PER_TOKEN


def token_budget(settings: Settings, transport: Transport) -> int:
    """Return the token limit of prompt and declarations: from the settings, the transport or the default."""
    return settings.prompt_tokens or getattr(transport, "prompt_tokens", None) or PROMPT_TOKENS


class ToolCost(NamedTuple):
    """The tokens that a tool takes in the sessions of a mode."""

    declaration: int
    summary: int
    guide: int
    guide_in_prompt: bool
    """True if the prompt has the guide; otherwise it has the summary."""


@dataclass(frozen=True, slots=True)
class FixedPrompt:
    """The part of the prompt that all sessions of a registry and mode share."""

    mode: Mode
    text: str
    costs: Mapping[str, ToolCost]
    declaration_tokens: int
    budget: int

    @property
    def tokens(self) -> int:
        """Return the tokens of instructions and declarations, without the context."""
        return estimated_tokens(self.text) + self.declaration_tokens

    @property
    def omitted(self) -> tuple[str, ...]:
        """Return the tools whose guides are not in the prompt."""
        return tuple(tool for tool, cost in self.costs.items() if not cost.guide_in_prompt)

    def to_wire(self) -> dict[str, int | str]:
        """Return the figures as JSON."""
        return {
            "mode": self.mode,
            "tokens": self.tokens,
            "budget": self.budget,
            "declarations": self.declaration_tokens,
            "tools": len(self.costs),
            "guides": len(self.costs) - len(self.omitted),
        }

    @property
    def figures(self) -> str:
        """Return the figures as text."""
        guides = len(self.costs) - len(self.omitted)
        return (
            f"{self.mode}: {self.tokens:,} of {self.budget:,} tokens, {self.declaration_tokens:,} of them "
            f"for declarations, guides for {guides} of {len(self.costs)} tools"
        )

    @property
    def excess(self) -> str:
        """Return the warning for a prompt that exceeds its budget without any guide; empty otherwise."""
        if self.tokens <= self.budget:
            return ""
        summaries = sum(cost.summary for cost in self.costs.values() if not cost.guide_in_prompt)
        conduct = estimated_tokens(self.text) - summaries
        return (
            f"{self.mode} sessions begin with about {self.tokens:,} tokens, but prompt_tokens allows only "
            f"{self.budget:,}: {self.declaration_tokens:,} for the declarations of {len(self.costs)} tools, "
            f"{summaries:,} for their summaries, {conduct:,} for the other instructions; no guide fits. "
            "Raise prompt_tokens, or deny tools you do not need: `jackfield tools --tokens` shows what each "
            "costs"
        )

    def with_context(self, context: Mapping[str, str]) -> str:
        """Return the instructions of one session: the fixed part, then its context."""
        if not context:
            return self.text
        facts = "\n".join(f"- {name}: {fact}" for name, fact in context.items())
        return f"{self.text}\n\n## Just now\n\n{facts}"


def tool_tokens(prompts: Iterable[FixedPrompt], tool_id: str) -> dict[str, Any] | None:
    """Return the tokens of a tool in the first prompt that has it, and the modes whose prompt has its guide.

    None if no prompt has the tool.
    """
    costs = {prompt.mode: prompt.costs[tool_id] for prompt in prompts if tool_id in prompt.costs}
    if not costs:
        return None
    first = next(iter(costs.values()))
    return {
        "declaration": first.declaration,
        "summary": first.summary,
        "guide": first.guide,
        "guideInPrompt": [mode for mode, cost in costs.items() if cost.guide_in_prompt],
    }


def fixed_prompt(
    tools: Iterable[FrozenTool],
    mode: Mode,
    folders: Sequence[Path],
    *,
    adapter: str,
    budget: int = PROMPT_TOKENS,
) -> FixedPrompt:
    """Return the fixed part for these tools, declared for `adapter`; earlier folders take precedence."""
    offered = [tool for tool in tools if mode in tool.manifest.allowed_modes]
    declared = [tool.provider_schemas[adapter] for tool in offered if adapter in tool.provider_schemas]
    core, conduct, loop = _part("core.md", folders), _part(f"{mode}.md", folders), _LOOP[mode]

    def text(in_full: frozenset[str]) -> str:
        parts = [core, conduct, *_tools(offered, in_full), f"## How to work\n\n{loop}"]
        return "\n\n".join(part for part in parts if part)

    declarations = orjson.dumps(declared).decode() if declared else ""
    room = (budget - _CONTEXT_TOKENS) * CHARACTERS_PER_TOKEN - len(declarations) - len(text(frozenset()))
    in_full = _fitting(offered, room) if mode == "text" else frozenset[str]()
    costs = {
        tool.manifest.tool_id: ToolCost(
            _declaration_tokens(tool, adapter),
            estimated_tokens(_line(tool)),
            estimated_tokens(tool.documentation),
            tool.manifest.tool_id in in_full,
        )
        for tool in offered
    }
    return FixedPrompt(mode, text(in_full), costs, estimated_tokens(declarations), budget)


def _declaration_tokens(tool: FrozenTool, adapter: str) -> int:
    declared = tool.provider_schemas.get(adapter)
    return estimated_tokens(orjson.dumps(declared).decode()) if declared is not None else 0


def _fitting(tools: Sequence[FrozenTool], room: int) -> frozenset[str]:
    """Return the tools whose guides fit into `room` characters, each in place of its summary."""

    def precedence(tool: FrozenTool) -> tuple[int, int, str]:
        manifest = tool.manifest
        return _CATEGORIES.index(manifest.category), len(tool.documentation), manifest.tool_id

    fitting = set()
    for tool in sorted(tools, key=precedence):
        size = len(_demoted(tool.documentation)) + len("\n\n") - len(_line(tool)) - len("\n")
        if size <= room:
            room -= size
            fitting.add(tool.manifest.tool_id)
    return frozenset(fitting)


def _part(name: str, folders: Sequence[Path]) -> str:
    for folder in folders:
        path = folder / name
        if path.is_file():
            return path.read_text("utf-8").strip()
    looked = ", ".join(str(folder) for folder in folders) or "no folder"
    raise SettingsError(f"there is no {name} in {looked}; reinstall jackfield-sessions, which contains it")


def _tools(tools: Sequence[FrozenTool], in_full: frozenset[str]) -> list[str]:
    """Return the section on tools: a summary of each tool, or its guide."""
    if not tools:
        return []
    lines = [_line(tool) for tool in tools if tool.manifest.tool_id not in in_full]
    short = [_IN_SHORT, "\n".join(lines)] if lines else []
    guides = [_demoted(tool.documentation) for tool in tools if tool.manifest.tool_id in in_full]
    return ["## Tools", *short, *guides]


def _line(tool: FrozenTool) -> str:
    return f"- {tool.manifest.tool_id}: {tool.summary}"


def _demoted(guide: str) -> str:
    """Return a guide with its headings moved down two levels, except in code."""
    lines, fenced = [], False
    for line in guide.strip().splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(f"##{line}" if line.startswith("#") and not fenced else line)
    return "\n".join(lines)
