"""Markdown, with front matter as fields of the record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import slug, spoken

_HEAD = re.compile(r"---[ \t]*\r?\n(.*?)(?:^|\r?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL | re.MULTILINE)
_LONGEST_HEAD = 64_000


def read(document: Document) -> Iterator[RecordDraft]:
    """Yield one record; its title is the stated one, the first heading or the file name."""
    source = document.text()
    stated, text = _front_matter(source)
    text = text.strip()
    if not text and not stated:
        raise UnreadableFileError("it contains only white space", "add content, or delete it")
    yield RecordDraft(stated, title=_heading(text) or spoken(slug(document.path.stem)), text=text)


def _front_matter(source: str) -> tuple[dict[str, Any], str]:
    head = _HEAD.match(source, 0, _LONGEST_HEAD)
    if head is None:
        return {}, source
    import yaml

    try:
        stated = yaml.load(head[1], _loader())  # noqa: S506 - a safe loader with further restrictions
    except yaml.YAMLError as error:
        raise _broken(error) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(f"its front matter contains an invalid value ({error})", "fix it") from None
    if stated is None:
        return {}, source[head.end() :]
    if not isinstance(stated, dict):
        if head[1].count("\n") == 0:
            return {}, source  # A line of text between two rules is not front matter.
        raise UnreadableFileError(
            "its front matter is not a list of `name: value` lines", "write it as such a list"
        )
    return {str(name): value for name, value in stated.items()}, source[head.end() :]


def _loader() -> Any:
    import yaml

    class Plain(yaml.SafeLoader):
        """YAML without aliases, which can expand to gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(None, None, "aliases are not supported", event.start_mark)
            return super().compose_node(parent, index)

    return Plain


def _broken(error: Any) -> UnreadableFileError:
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or "it is not YAML"
    return UnreadableFileError(
        f"its front matter cannot be read: {why}",
        "fix that line; put a value with `: ` or `#` in quotation marks",
        mark.line + 2 if mark is not None else None,
    )


def _heading(text: str) -> str:
    """Return the first heading; the text is parsed, because a `#` in a code block is not a heading."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt().parse(text[:20_000])
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            return "".join(part.content for part in inline.children or ()).strip()
    return ""
