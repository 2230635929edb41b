"""What a model is told before anything is said: conduct, tools, the way to work, and what is so just now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jackfield.contract.context import Mode
from jackfield.registry.registry import Registry
from jackfield.settings import SettingsError

_LOOP: dict[Mode, str] = {
    "voice": """\
1. Missing something? Search, at most twice in a turn, and fetch by id what you already know by id.
2. Answer from what was found, and name the source.
3. To act, look first, say what you found, and act when the user has decided.
4. After a refusal or a failure, say it and go on; do not try the same again.""",
    "text": """\
1. Missing something? Search with filters, at most five times in a turn; look at the best one or two by id.
2. Answer from what was found, and cite it.
3. To act, look first, discuss what you found, and act when the user has decided.
4. What needs approval is pending until an answer says otherwise.
5. After a refusal or a failure, follow its suggestion or say what is missing; never call the same again.""",
}


_OURS = Path(__file__).parent / "prompts"


def folders(own: Path | None) -> list[Path]:
    """Where prompts are looked for: a deployment's own folder, then ours."""
    if own is not None and not own.is_dir():
        raise SettingsError(f"`prompts` is {str(own)!r}, and there is no such folder")
    return [_OURS] if own is None else [own, _OURS]


class Prompt(NamedTuple):
    """Instructions, and about how many tokens they and the declarations take."""

    text: str
    tokens: int


def estimated_tokens(text: str) -> int:
    """About how many tokens a text takes, at four characters each."""
    return len(text) // 4


def compose(
    registry: Registry, mode: Mode, folders: Sequence[Path], context: Mapping[str, str] | None = None
) -> Prompt:
    """The instructions of a session; the first folder that has a file provides it."""
    parts = [_part("core.md", folders), _part(f"{mode}.md", folders), _tools(registry, mode)]
    parts.append(f"## How to work\n\n{_LOOP[mode]}")
    if context:
        facts = "\n".join(f"- {name}: {fact}" for name, fact in context.items())
        parts.append(f"## Just now\n\n{facts}")
    text = "\n\n".join(part for part in parts if part)
    return Prompt(text, estimated_tokens(text))


def _part(name: str, folders: Sequence[Path]) -> str:
    for folder in folders:
        path = folder / name
        if path.is_file():
            return path.read_text("utf-8").strip()
    looked = ", ".join(str(folder) for folder in folders) or "no folder"
    raise SettingsError(f"there is no {name} in {looked}; prompts are core.md, voice.md and text.md")


def _tools(registry: Registry, mode: Mode) -> str:
    """A line on each tool where there is little room, the whole guides where there is more."""
    if mode == "voice":
        lines = [f"- {tool}: {summary}" for tool, summary in registry.summaries(mode).items()]
        return "## Tools\n\n" + "\n".join(lines) if lines else ""
    guides = [_demoted(tool.frozen.documentation) for tool in registry.offered(mode)]
    return "\n\n".join(["## Tools", *guides]) if guides else ""


def _demoted(guide: str) -> str:
    """A guide as a part of a larger page: its headings two levels down, where they are not in code."""
    lines, fenced = [], False
    for line in guide.strip().splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(f"##{line}" if line.startswith("#") and not fenced else line)
    return "\n".join(lines)
