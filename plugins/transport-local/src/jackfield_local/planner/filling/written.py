"""Exact values: taken only where they stand in the request as such, and never from its prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jackfield_local.language.addresses import Piece
from jackfield_local.language.spans import Span, without
from jackfield_local.language.words import content
from jackfield_local.planner.heard import LONGEST_REQUEST, Heard
from jackfield_local.planner.language import exact
from jackfield_local.planner.reading.forms import Form
from jackfield_local.planner.reading.tool import Parameter, Tool

_COLON = re.compile(r":(?:[ \t]*\n|[ \t]+(?=\S))|\n")
_BY = re.compile(
    r"\s*(?:with|by|to|into|→|->|should (?:be|read)|must be|becomes?)(?: the text)?\s*", re.IGNORECASE
)
_WHOLLY_QUOTED = re.compile(r"\s*(?:\"([^\"]*)\"|“([^”]*)”|`([^`]*)`|'([^']*)')[.]?\s*", re.DOTALL)
_OF_A_FILE = re.compile(r"\bof the file\b", re.IGNORECASE)
_MOST_QUOTES = 100
_NEAR = 80
"""So many characters before its quotes a label may begin."""
_ORDER = (Form.PATH, Form.COMMAND, Form.GLOB, Form.REGEX, Form.VERBATIM)

Found = tuple[Parameter, "str | list[str]", list[Span]]


def written(tool: Tool, heard: Heard) -> list[Found]:
    """The exact values of a tool that stand in a request, each with its place there."""
    wanted = [each for each in tool.parameters if each.form is not None]
    return [*_Request(heard, wanted).found()] if wanted else []


def only_written(tool: Tool, heard: Heard) -> bool:
    """Whether a request says nothing besides exact values of a tool."""
    spans = [span for _, _, found in written(tool, heard) for span in found]
    return bool(spans) and not content(without(heard.request, spans))


def answer(parameter: Parameter, text: str) -> str | list[str] | None:
    """An exact value that was asked for, if the answer is one."""
    value = _answered(parameter, text.strip())
    return [value] if parameter.many and value is not None else value


def _answered(parameter: Parameter, text: str) -> str | None:
    if quoted := _WHOLLY_QUOTED.fullmatch(text):
        return next((each for each in quoted.groups() if each is not None), "")
    label = re.match(rf"(?:the )?{re.escape(parameter.spoken)}(?: is| should be)?:?\s+", text, re.IGNORECASE)
    rest = text[label.end() :] if label else text
    if parameter.form is Form.VERBATIM:
        return rest
    if parameter.form is Form.COMMAND:
        ordered = exact.ordered_command(text)
        return ordered.text if ordered else (rest if exact.is_command(rest) else None)
    pieces = exact.paths(rest) if parameter.form is Form.PATH else exact.patterns(rest)
    if pieces:
        return pieces[0].text
    return rest.rstrip(".!?") if len(rest.split()) == 1 else None


class _Request:
    """A request from which exact values are taken one after the other, each piece once."""

    def __init__(self, heard: Heard, wanted: Sequence[Parameter]) -> None:
        self._wanted = sorted(
            wanted, key=lambda each: (not each.required, _ORDER.index(each.form or Form.PATH))
        )
        self._text = heard.text
        self._takes_text = any(each.form is Form.VERBATIM for each in wanted)
        # What follows a colon is a text of its own where the tool takes one.
        self._said = heard.request if self._takes_text else heard.text[:LONGEST_REQUEST]
        self._quotes = heard.quotes[:_MOST_QUOTES]
        self._used: list[Span] = []

    def found(self) -> Iterator[Found]:
        left = []
        for parameter in self._wanted:
            labelled = self._labelled(parameter)
            if labelled is not None:
                yield self._take(parameter, [labelled])
            else:
                left.append(parameter)
        texts = [each for each in left if each.form is Form.VERBATIM and each.required]
        for parameter in left:
            if parameter not in texts and (pieces := self._pieces(parameter)):
                yield self._take(parameter, pieces if parameter.many else pieces[:1])
        for parameter, piece in zip(texts, self._texts(len(texts)), strict=False):
            yield self._take(parameter, [piece])

    def _take(self, parameter: Parameter, pieces: Sequence[Piece]) -> Found:
        values = [each.text for each in pieces]
        spans = [each.span for each in pieces]
        self._used += spans
        return parameter, values if parameter.many else values[0], spans

    def _labelled(self, parameter: Parameter) -> Piece | None:
        """What stands in quotes right after the name of the parameter."""
        named = re.compile(rf"\b{re.escape(parameter.spoken)}(?: is| should be)?\s*[:=]?\s*$", re.IGNORECASE)
        return next((each for each in self._free() if named.search(self._before(each))), None)

    def _before(self, piece: Piece) -> str:
        return self._text[max(0, piece.span.start - _NEAR) : piece.span.start]

    def _pieces(self, parameter: Parameter) -> list[Piece]:
        if parameter.form is Form.PATH:
            return self._paths(parameter)
        if parameter.form is Form.COMMAND:
            return self._command() if parameter.required else []
        if parameter.form in (Form.GLOB, Form.REGEX):
            return self._patterns(parameter)
        return []

    def _paths(self, parameter: Parameter) -> list[Piece]:
        quoted = [each for each in self._free() if exact.is_path(each.text)]
        bare = [each for each in exact.paths(self._said) if self._bare(each)]
        if _OF_A_FILE.search(parameter.description):
            bare = [each for each in bare if not each.text.endswith("/")]
        alone = not any(each.required for each in self._wanted if each is not parameter)
        return bare or quoted or (self._free() if parameter.required and alone else [])

    def _command(self) -> list[Piece]:
        ordered = exact.ordered_command(self._text)
        return [ordered] if ordered else self._free()[:1]

    def _patterns(self, parameter: Parameter) -> list[Piece]:
        if parameter.form is Form.REGEX:
            written = [each for each in exact.expressions(self._said) if self._bare(each)]
            return (self._free() or written) if parameter.required else []
        wild = [each for each in exact.patterns(self._said) if self._bare(each)]
        if wild or not parameter.required:
            return wild
        of_files = exact.files_of_a_language(self._said)
        named = [each for each in exact.paths(self._said) if exact.has_ending(each.text)]
        return [exact.anywhere(each) for each in self._free()] or (
            [of_files] if of_files else [exact.anywhere(each) for each in named]
        )

    def _texts(self, count: int) -> list[Piece]:
        """As many texts as are wanted, or none: a guess which is which would change the wrong one."""
        if count == 1:
            colon = _COLON.search(self._text)
            if colon is not None and not self._in_quotes(Span(*colon.span())):
                rest = self._text[colon.end() :]
                quoted = _WHOLLY_QUOTED.fullmatch(rest)
                said = next((each for each in quoted.groups() if each is not None), "") if quoted else rest
                return [Piece(said, Span(colon.start(), len(self._text)))]
            return self._free() if len(self._free()) == 1 else []
        free = self._free()
        if count != 2 or len(free) != 2:
            return []
        between = self._text[free[0].span.end : free[1].span.start]
        return free if _BY.fullmatch(between) else []

    def _free(self) -> list[Piece]:
        return [each for each in self._quotes if self._unused(each)]

    def _unused(self, piece: Piece) -> bool:
        return not any(piece.span.overlaps(span) for span in self._used)

    def _bare(self, piece: Piece) -> bool:
        return self._unused(piece) and not self._in_quotes(piece.span)

    def _in_quotes(self, span: Span) -> bool:
        return any(span.overlaps(each.span) for each in self._quotes)
