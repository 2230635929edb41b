"""Finds the sentences in which an assistant says that it has done something.

The grammar is English and small. A claim is a past form of a tool's verb in one of four positions: after `I`
or `we`, after `has been`, after `is` or `was`, or at the beginning of a sentence. Questions, negations,
conditions, reports of what others said, and quotations are not claims. Whatever the grammar does not
recognise is not a claim, so a text in another language contains none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jackfield.contract.claim_phrases import AUXILIARIES, FUNCTION_WORDS, ClaimPhrase
from jackfield_language.words import stem

MAX_TEXT = 20_000
"""How much of a message is searched, in characters."""

MAX_WORDS = 200
"""How many words of a sentence are read: the time grows with the square of their number."""

MAX_CLAIMS = 8
"""How many claims of one message are returned."""

MAX_SENTENCE = 200
"""How much of its sentence a claim keeps, in characters."""

# What somebody else wrote: code, quoted lines, and text in quotation marks.
_QUOTATION = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|^[ \t]*>.*$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|\u2018[^'\n]*'"
    r"|(?<![\w'])'[^'\n]*'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = " quoted "
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

_MARKUP = re.compile(r"[*_#~]+|^[ \t]*(?:[-+•]|\d+[.)])[ \t]+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?…])[)\]]*\s+|\n+")
_TOKEN = re.compile(r"[^\W_]+(?:(?:[-'@/]|\.(?![A-Z]))[^\W_]+)*|[,;:()—\u2013]|--?(?=\s)")
_CLITIC = re.compile(r"(.+?)(n't|'ve|'s|'re|'d|'ll|'m)$")
_CLITIC_WORDS = {"n't": "not", "'ve": "have", "'re": "are", "'ll": "will", "'m": "am"}

# Closed word classes of English that decide what a verb's clause states.
_FIRST_PERSON = frozenset({"i", "we"})
_OTHERS = frozenset({"you", "he", "she", "they", "it"})
_OBJECTS = frozenset({"it", "you", "that", "this", "them", "everything"})
_HAVE = frozenset({"have", "has", "had", "'d"})
_PERFECT = frozenset({"have", "has", "'s"})
_POSSESSION = frozenset({"have", "got"})
_BE = frozenset({"is", "are", "was", "were", "am", "'s", "been"})
_INVERTED = _HAVE | {"'s", "did", "do"}
_NEGATIVE_OBJECTS = frozenset({"nothing", "none", "neither", "nobody"})
_UNSTATED = _NEGATIVE_OBJECTS | {
    # Negations; modal verbs except "can", as in "I can confirm that it was booked"; conditions.
    "not", "never", "no", "nor", "cannot", "without", "hardly",
    "will", "would", "shall", "should", "could", "may", "might", "must", "ought",
    "if", "unless", "whether", "when", "whenever", "once", "until", "till", "before", "after", "suppose",
    "supposing", "assuming", "provided", "case",
}  # fmt: skip
_ADVERBS = frozenset({"just", "now", "already", "also", "then", "all", "both", "even"})
_COORDINATORS = frozenset({"and", "then", "&"})
_BREAKS = frozenset(
    {",", ";", ":", "—", "\N{EN DASH}", "-", "--", "(", ")", "but", "so", "because", "although", "though"}
)
_OTHER_SUBJECTS = frozenset({";", ":", "(", ")", "he", "she", "they"})
_PREPOSITIONS = frozenset(
    {
        "to", "in", "on", "at", "for", "from", "of", "with", "by", "into", "as", "about", "over", "under",
        "and", "or", "if", "that", "which", "who", "whose", "when", "where",
    }
)  # fmt: skip


class ActionClaim(NamedTuple):
    """A statement by the assistant that it has done what one of these tools does."""

    tools: tuple[str, ...]
    phrase: str
    """The tool's phrase that the sentence contains."""
    sentence: str
    verb: str
    """The stem of the verb."""
    passive: bool
    """True if the sentence does not say who did it."""
    perfect: bool
    """True if it says that something happened (`has been booked`), not only how things are (`is booked`)."""
    recent: bool
    """True if the sentence says that it happened just now."""


class _Entry(NamedTuple):
    tool_id: str
    phrase: ClaimPhrase
    stems: frozenset[str]


class _Predicate(NamedTuple):
    """How a sentence states the past form of a verb."""

    subject: int
    """The position of the statement's first word: the subject, or the auxiliary of a passive."""
    passive: bool
    perfect: bool
    recent: bool


class ClaimMatcher:
    """Finds the claims of a message for a fixed set of tools."""

    def __init__(self, phrases: Mapping[str, Sequence[ClaimPhrase]]) -> None:
        """`phrases` are the phrases of each tool, by the tool's id."""
        self._by_verb: dict[str, list[_Entry]] = {}
        past_forms = [r"[^\W_]*ed"]
        for tool_id, said in phrases.items():
            for phrase in said:
                entry = _Entry(tool_id, phrase, frozenset(map(stem, phrase.words)))
                key = _regular_key(phrase.verb) if phrase.regular else phrase.verb
                self._by_verb.setdefault(key, []).append(entry)
                if not phrase.regular:
                    past_forms.append(re.escape(phrase.verb))
        # The words of a message that may be verbs of these tools; most messages contain few.
        self._candidates = re.compile(rf"(?<![^\W_])(?:{'|'.join(past_forms)})(?![^\W_])")

    def find(self, text: str) -> list[ActionClaim]:
        """Return the claims of a message, each phrase once, in the order of the text."""
        found: dict[str, ActionClaim] = {}
        text = text[:MAX_TEXT]
        # Most messages contain no verb of any tool.
        if not any(_verb_key(word) in self._by_verb for word in self._candidates.findall(text.lower())):
            return []
        for sentence in _sentences(text):
            for claim in self._in_sentence(sentence):
                found.setdefault(claim.phrase, claim)
                if len(found) == MAX_CLAIMS:
                    return list(found.values())
        return list(found.values())

    def _in_sentence(self, sentence: str) -> Iterator[ActionClaim]:
        tokens = _tokens(sentence)[:MAX_WORDS]
        stems: frozenset[str] | None = None
        for place, token in enumerate(tokens):
            entries = self._by_verb.get(_verb_key(token))
            if entries is None:
                continue
            predicate = _predicate(tokens, place, question=sentence.rstrip().endswith("?"))
            if predicate is None:
                continue
            stems = stems or frozenset(map(stem, tokens))
            matching = [entry for entry in entries if entry.stems <= stems]
            if matching:
                yield ActionClaim(
                    tuple(dict.fromkeys(entry.tool_id for entry in matching)),
                    matching[0].phrase.text,
                    " ".join(sentence.split())[:MAX_SENTENCE],
                    stem(token),
                    predicate.passive,
                    predicate.perfect,
                    predicate.recent,
                )


def summary_phrase(summary: str) -> ClaimPhrase | None:
    """Return the phrase in a guide's summary: the first verb and its object, if there are both.

    `Creates an event in a calendar.` gives `created event`. A verb with an irregular past form gives a
    phrase that no sentence contains; such a tool needs `says`.
    """
    tokens = _tokens(summary.partition(".")[0])
    if not tokens or tokens[0] in FUNCTION_WORDS | AUXILIARIES | _PREPOSITIONS:
        return None
    noun = ""
    for token in tokens[1:]:
        if token in _PREPOSITIONS or token in _BREAKS or token in AUXILIARIES:
            break
        noun = token if token not in FUNCTION_WORDS else noun
    return ClaimPhrase(f"{tokens[0]} {noun}", tokens[0], (noun,), regular=True) if noun else None


def _verb_key(word: str) -> str:
    """Return what the past forms of a verb share: the stem if they are regular, else the form itself."""
    return _regular_key(word) if word.endswith("ed") else word


def _regular_key(verb: str) -> str:
    """Return what all forms of a regular verb share."""
    return f"{stem(verb)}+ed"


def _sentences(text: str) -> Iterable[str]:
    plain = _MARKUP.sub("", _QUOTATION.sub(_QUOTED, text.replace(_APOSTROPHE, "'")))
    return filter(None, _SENTENCE_END.split(plain))


def _tokens(sentence: str) -> list[str]:
    """Return the words in lower case, and the marks that divide clauses; contractions become two words."""
    tokens: list[str] = []
    for word in map(str.lower, _TOKEN.findall(sentence)):
        clitic = _CLITIC.fullmatch(word) if "'" in word else None
        if clitic is None:
            tokens.append(word)
        else:
            tokens += [clitic[1], _CLITIC_WORDS.get(clitic[2], clitic[2])]
    return tokens


def _predicate(tokens: Sequence[str], place: int, *, question: bool) -> _Predicate | None:
    """Return how the verb at this place is stated; None if the sentence does not state that it was done."""
    begin, end = _clause(tokens, place)
    if (question and end == len(tokens)) or _is_request(tokens):
        return None
    before, recent = _skip_adverbs(tokens, place - 1, begin)
    if before < begin:
        # The clause has no subject. Only at the beginning of a sentence does that mean "I".
        elliptic = begin == 0 and not _is_label(tokens, place)
        return _Predicate(before, passive=False, perfect=True, recent=recent) if elliptic else None
    if tokens[before] in _COORDINATORS:
        return _coordinated(tokens, before, recent=recent)
    found = _before_verb(tokens, before, begin, recent=recent)
    if found is None or _is_denied(tokens, begin, found, place, end):
        return None
    if tokens[before] in _BE and "already" in tokens[before:place]:
        return None  # "It is already booked" says how things were before.
    return found


def _before_verb(tokens: Sequence[str], before: int, begin: int, *, recent: bool) -> _Predicate | None:
    """Return how a verb is stated by the words before it, of which the last one is at `before`."""
    word = tokens[before]
    if word in _FIRST_PERSON:  # "I booked"
        return _Predicate(before, passive=False, perfect=False, recent=recent)
    if word in _BE and word != "been":  # "is booked"
        return _Predicate(before, passive=True, perfect=recent, recent=recent)
    subject, more = _skip_adverbs(tokens, before - 1, begin)
    if word in _OBJECTS:  # "I have it booked", "we've got you booked"
        while subject > begin and tokens[subject] in _POSSESSION:
            subject -= 1
        stated = begin <= subject < before - 1 and tokens[subject] in _FIRST_PERSON
    elif word == "been":  # "has been booked"
        stated = subject >= begin and tokens[subject] in _PERFECT
    else:  # "I have booked"
        stated = word in _HAVE and subject >= begin and tokens[subject] in _FIRST_PERSON
    return _Predicate(subject, word == "been", perfect=True, recent=recent or more) if stated else None


def _clause(tokens: Sequence[str], place: int) -> tuple[int, int]:
    """Return where the clause around a place begins and ends."""
    begin = next((index + 1 for index in range(place - 1, -1, -1) if tokens[index] in _BREAKS), 0)
    end = next((index for index in range(place + 1, len(tokens)) if tokens[index] in _BREAKS), len(tokens))
    return begin, end


def _skip_adverbs(tokens: Sequence[str], place: int, begin: int) -> tuple[int, bool]:
    """Go back over adverbs; return the place of the word before them, and whether one means `just now`."""
    recent = False
    while place >= begin and (tokens[place] in _ADVERBS or tokens[place].endswith("ly")):
        recent = recent or tokens[place] in {"just", "now"}
        place -= 1
    return place, recent


def _is_label(tokens: Sequence[str], place: int) -> bool:
    """Return whether a sentence that begins with a past form only names something: `Booked rooms are red`."""
    rest = tokens[place + 1 :]
    return ":" in rest or any(word in _BE or word in _HAVE for word in rest)


def _coordinated(tokens: Sequence[str], conjunction: int, *, recent: bool) -> _Predicate | None:
    """Return how the verb after `and` is stated: in the same way as the verb before it."""
    for place in range(conjunction - 1, -1, -1):
        word = tokens[place]
        if word in _OTHER_SUBJECTS:
            return None
        passive = word in _BE
        if passive or word in _FIRST_PERSON:
            found = _Predicate(place, passive=passive, perfect=word == "been", recent=recent)
            begin, _ = _clause(tokens, place)
            return None if _is_denied(tokens, begin, found, conjunction, len(tokens)) else found
    return None


def _is_denied(tokens: Sequence[str], begin: int, found: _Predicate, place: int, end: int) -> bool:
    """Return True if the clause does not state the verb: it is negated, conditional, asked, or reported."""
    left, right, subject = tokens[begin:place], tokens[place + 1 : end], found.subject
    if not _UNSTATED.isdisjoint(left) or not _NEGATIVE_OBJECTS.isdisjoint(right):
        return True
    if not found.passive and subject > begin and tokens[subject - 1] in _INVERTED:
        return True  # "Have I booked it"
    first = next((index for index in range(begin, place) if tokens[index] not in _ADVERBS | {"and"}), place)
    if tokens[first] in _OTHERS and first < subject - 1:
        return True  # "You said I booked it", "It looks like it was booked"
    return found.passive and _has_agent(right)


def _has_agent(right: Sequence[str]) -> bool:
    """Return whether the words after a passive verb name another agent: `booked on Monday by Ana`."""
    for place, word in enumerate(right):
        if word == "by":
            return right[place + 1 : place + 2] not in (["me"], ["us"])
        if word.endswith("ed"):
            return False  # The rest belongs to another verb.
    return False


def _is_request(tokens: Sequence[str]) -> bool:
    """Return whether a sentence asks the user for something: `Please check that it was booked`."""
    return tokens[0] in {"please", "kindly"} and tokens[1:2] not in (["note"], ["be"])
