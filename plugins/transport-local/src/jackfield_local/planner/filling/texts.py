"""Texts as arguments: what the user says in so many words, what the request is about, what is handed over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jackfield_local.language.spans import Span, without
from jackfield_local.language.words import STOP, content, name_words, stem, words
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import bare, clauses, polite_stripped, seeks, subject, wish
from jackfield_local.planner.reading.manner import Manner
from jackfield_local.planner.reading.tool import Parameter, Tool

_NAMING = re.compile(
    r"\b(?:called|named|titled|entitled|(?:call|name|title) it|with the (?:title|name|subject)"
    r"|(?:title|subject|name):)\s+"
    r"(.+)$",
    re.IGNORECASE,
)
_NAMED_UNTIL = re.compile(
    r"\x00|[,;\n]|\.(?:\s|$)|\s+(?:and|then)\s+(?:invite|add|send|make|put|ask|tell|with|set|use)\b"
    r"|\s+(?:on|at|for|from|with|in|to)\s*(?=\x00)",
    re.IGNORECASE,
)
_UNWANTED = re.compile(
    r"[,;]?\s*\b(?:without|avoid(?:ing)?|except(?: for)?|excluding|exclude|leave out|but not|but no"
    r"|don['\u2019]t (?:want|include|show|use)"
    r"|(?<!is )(?<!are )no|not)\s+(?:any |the |a |an )?([^,.;!?]+?)(?=\s+(?:please|but|in|on|for"
    r"|and make)\b|[,.;!?]|$)",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\b(?:relevan(?:t|ce) (?:to|for)|about|on|for|regarding|fits?|related to|matches|match"
    r"|suits?)\s+(?!me\b|us\b)([^,.;!?]+)",
    re.IGNORECASE,
)
_EMPLOYED = re.compile(
    r"\b(?:at|from|of|with|for|working (?:at|for)|who works (?:at|for))\s*$", re.IGNORECASE
)
_WORKING = re.compile(r"\b(?:at|from|working (?:at|for)|works (?:at|for))\s*$", re.IGNORECASE)
_AT_WORK = re.compile(r"\s+(?:who works |working )?(?:at|from)\s+", re.IGNORECASE)
_PROPER = re.compile(
    r"\b[A-ZÀ-Þ][\w.\u2019'-]*(?:\s+(?:de|van|von|der|la|el|bin|al|&|[A-ZÀ-Þ][\w.\u2019'-]*))*"
)


class Spoken:
    """An utterance as a source of texts, with what other arguments have taken of it."""

    def __init__(self, tool: Tool, heard: Heard, taken: Iterable[Span]) -> None:
        self.tool = tool
        self.heard = heard
        self.taken = [span for span in taken if span.end <= len(heard.request)]

    def text(self, parameter: Parameter) -> str | None:
        """The words for a parameter that cannot be left out."""
        if parameter.manner is Manner.POINTED:
            return self._handed_over()
        if parameter.manner is Manner.COMPOSED:
            return None
        if named := self.named(parameter):
            return named
        return self._about(parameter)

    def optional(self, parameter: Parameter) -> str | None:
        """The words for a parameter that can be left out: only where something leads to them."""
        if parameter.manner in (Manner.POINTED, Manner.COMPOSED):
            return None
        if {"query", "topic", "subject", "about"} & set(name_words(parameter.name)):
            match = _TOPIC.search(without(self.heard.request, self.taken))
            return bare(re.sub(r"\s+best$", "", match.group(1).strip())) if match else None
        label = re.search(
            rf"\b{re.escape(parameter.spoken)}(?::| is| should be) (.+)$", self.heard.request, re.IGNORECASE
        )
        return label.group(1).strip() if label else None

    def named(self, parameter: Parameter) -> str | None:
        """What the user gives a name to, or puts in quotes."""
        if not {"title", "name", "subject", "label", "headline"} & set(name_words(parameter.name)):
            return None
        if self.heard.quotes:
            return self.heard.quotes[0].text
        text = self.heard.request
        for span in sorted(self.taken, reverse=True):
            text = f"{text[: span.start]}\x00{text[span.end :]}"
        if match := _NAMING.search(text):
            return _NAMED_UNTIL.split(match.group(1), maxsplit=1)[0].strip(" .!?\x00") or None
        return None

    def names(self) -> tuple[list[str], list[str]]:
        """Names: those of whom is meant, and those of where they belong."""
        people, places = self._proper_names()
        return people or self._plain_name(), places

    def person(self) -> str | None:
        """Whom the request is for or about, where that is written as a name."""
        return next(iter(self._proper_names()[0]), None)

    def _proper_names(self) -> tuple[list[str], list[str]]:
        people: list[str] = []
        places: list[str] = []
        text = self.heard.request
        own = {stem(word) for word in name_words(self.tool.id)}
        for match in _PROPER.finditer(text):
            if any(Span(*match.span()).overlaps(span) for span in self.taken):
                continue
            name = (
                re.sub(r"['\u2019]s$", "", match.group()).rstrip(".,'\u2019")
                if not _initial(match.group())
                else match.group()
            )
            parts = [part for part in name.split() if stem(part) not in own]
            while parts and match.start() == 0 and (parts[0].lower() in STOP or _is_verb(parts[0])):
                parts.pop(0)
            if not parts or (len(parts) == 1 and parts[0].lower().split("'")[0] in STOP):
                continue
            name = re.sub(r"['\u2019]s$", "", " ".join(parts))
            before = text[: match.start()]
            elsewhere = _EMPLOYED.search(before) if people else _WORKING.search(before)
            (places if elsewhere else people).append(name)
        return people, places

    def _plain_name(self) -> list[str]:
        """A name that was written without capitals: what is left when the tool's own words are gone."""
        told = f"{self.tool.id.replace('_', ' ')} {self.tool.description} {self.tool.guide.summary}"
        own = set(content(told))
        said = _AT_WORK.split(subject(self.heard.request), maxsplit=1)[0]
        left = [word for word in words(said) if word not in STOP and stem(word) not in own]
        return [" ".join(left).replace("'s", "")] if 0 < len(left) <= 3 and not _is_verb(left[0]) else []

    def _handed_over(self) -> str | None:
        if self.heard.payload:
            return self.heard.payload.text
        return max((each.text for each in self.heard.quotes), key=len, default=None)

    def _about(self, parameter: Parameter) -> str | None:
        rest = self._without_home(without(self.heard.request, self.taken))
        if self.tool.is_open or (seeks(rest) and not self._does()):
            found = subject(rest)
            return found if self._says_something(found) else None
        found = self._without_kind(wish(rest))
        found = bare(found) if parameter.manner is Manner.SAID else found
        if not self._says_something(found):
            return None
        return found[:1].upper() + found[1:] if parameter.manner is Manner.SAID else found

    def _does(self) -> bool:
        examples = self.tool.guide.examples
        return bool(examples) and sum(seeks(each.says) for each in examples) * 2 < len(examples)

    def _without_home(self, text: str) -> str:
        """Without "in my calendar": where the tool works says nothing about what it is to do."""
        homes = {stem(word) for word in name_words(self.tool.id)} | set(
            content(self.tool.guide.summary.split(".")[0])
        )
        pattern = re.compile(
            r"\b(?:in|into|to|on|from|through|onto)\s+(?:my |the |our |your )?((?:\w+\s+)?\w+)\b",
            re.IGNORECASE,
        )

        def drop(match: re.Match[str]) -> str:
            said = content(match.group(1))
            return "" if said and said[-1] in homes and len(set(said) - homes) == 0 else match.group()

        return " ".join(pattern.sub(drop, text).split())

    def _without_kind(self, text: str) -> str:
        """Without "a picture of": the kind of thing that the tool makes anyway."""
        told = f"{self.tool.description.split('. ')[0]} {self.tool.id.replace('_', ' ')} {self.tool.purpose}"
        kinds = set(content(told))
        match = re.match(
            r"((?:[\w-]+\s+){1,4}?)(?:of|showing|with|about|for|that shows|to show)\s+(?=\S)",
            text,
            re.IGNORECASE,
        )
        if match is None:
            return text
        said = [stem(word) for word in words(match.group(1)) if word not in STOP]
        return text[match.end() :] if said and said[-1] in kinds else text

    def _says_something(self, text: str) -> bool:
        own = {stem(word) for word in name_words(self.tool.id)}
        kinds = set(content(f"{self.tool.description} {self.tool.guide.summary}"))
        said = content(text)
        return any(word not in own for word in said) and (len(said) > 1 or said[0] not in kinds)


def besides(tool: Tool, heard: Heard) -> str | None:
    """What was said besides the wish for the tool itself: the clauses that have none of its words."""
    own = set(content(f"{tool.id.replace('_', ' ')} {tool.description} {tool.guide.summary}"))
    plain = [each.says for each in tool.guide.examples if not any(each.args.values())]
    own |= {word for says in plain for word in content(says)}
    parts = clauses(heard.request)
    left = [part for part in parts if len(content(part)) > 1 and not set(content(part)[:2]) & own]
    return polite_stripped(" and ".join(left)) if len(parts) > 1 and left else None


def names_it(heard: Heard) -> bool:
    """Whether a name or a text is given in so many words."""
    return bool(heard.quotes or _NAMING.search(heard.request))


def unwanted(heard: Heard) -> tuple[list[str], list[Span]]:
    """What must not be there, and where that was said."""
    found, spans = [], []
    for match in _UNWANTED.finditer(heard.request):
        parts = re.split(r"\s*(?:,| and | or )\s*", match.group(1).strip())
        found += [re.sub(r"^(?:no|any|the|a|an)\s+", "", part, flags=re.IGNORECASE) for part in parts if part]
        spans.append(Span(*match.span()))
    return found, spans


def _initial(name: str) -> bool:
    return bool(re.fullmatch(r"(?:[A-Z]\.\s*)+.*", name))


def _is_verb(word: str) -> bool:
    return word.lower() in {
        "find", "show", "give", "send", "look", "get", "search", "fetch", "open", "list", "check", "who",
        "tell",
        "draw", "make", "create", "book", "reserve", "order", "schedule",
        "add", "put", "please", "invite", "somebody",
    }  # fmt: skip


def cut(text: str, longest: Sequence[int]) -> str:
    """As much of a text as fits, to a whole word."""
    limit = min(longest, default=len(text))
    return text if len(text) <= limit else text[: limit + 1].rsplit(" ", 1)[0][:limit]
