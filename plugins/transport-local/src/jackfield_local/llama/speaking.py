"""Words of the model: as it writes them, or sentence by sentence where each has to be checked."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from jackfield.contract.context import Mode
from jackfield.transport.protocol import TransportError

from jackfield_local.llama.briefing import NOT_SAID, SPEAKING, reading
from jackfield_local.llama.engine import Message, Piece, Writer
from jackfield_local.planner.telling.told import Quoted

_log = logging.getLogger(__name__)

MOST_TOKENS = 160

LONGEST_EXCERPT = 1500
"""Characters of a record that the model is given: it reads about 200 in a second."""

LONGEST_QUESTION = 500

UNCLEAR = "I am not sure that this answers it:"
"""What is said before the record's own words, when the model does not find the answer in them."""

_ENDED = re.compile(r"(?<=[.!?])[\"”')\]]*\s+")
_FACT = re.compile(r"https?://\S+|\S+@\S+\.\w+|\d+(?:[.,:/-]\d+)*")


async def chat(model: Writer, asked: Sequence[Message], instead: str) -> AsyncGenerator[str, None]:
    """What the model says, piece by piece; `instead` of it, when it cannot."""
    said = False
    try:
        async with aclosing(model.write(SPEAKING, asked, most=MOST_TOKENS)) as pieces:
            async for piece in pieces:
                said = said or bool(piece.text.strip())
                yield f"{piece.text} ..." if piece.cut else piece.text
    except TransportError as error:
        _log.warning("words were not to be had of the model: %s", error)
    if not said:
        yield instead


async def answer(model: Writer, question: str, quoted: Quoted, mode: Mode) -> AsyncGenerator[str, None]:
    """An answer from a record, sentence by sentence; the record's own words, when the model has none.

    They follow a word of doubt, when it finds no answer in them. A sentence with a number or an address that
    the record does not have is not said, nor what comes after it.
    """
    excerpt = quoted.excerpt[:LONGEST_EXCERPT]
    asked = (reading(question[:LONGEST_QUESTION], quoted.title, excerpt, mode),)
    between, instead = "", quoted.said
    try:
        async with (
            aclosing(model.write(SPEAKING, asked, most=MOST_TOKENS)) as pieces,
            aclosing(_sentences(pieces)) as sentences,
        ):
            async for sentence in sentences:
                if NOT_SAID in sentence:
                    instead = f"{UNCLEAR} {quoted.said}"
                    break
                if not grounded(sentence, f"{quoted.title} {quoted.excerpt} {question}"):
                    _log.warning("the model said what the record does not have; it was left out")
                    break
                yield between + sentence
                between = " "
    except TransportError as error:
        _log.warning("an answer was not to be had of the model: %s", error)
    if not between:
        yield instead


def grounded(sentence: str, evidence: str) -> bool:
    """Whether every number and every address in a sentence stands in the evidence."""
    return all(fact.rstrip(".,;:!?)]") in evidence for fact in _FACT.findall(sentence))


async def _sentences(pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[str, None]:
    """Whole sentences; one that breaks off is kept only if it is the first."""
    written, before = "", False
    async for piece in pieces:
        written += piece.text
        *whole, written = _ENDED.split(written)
        for sentence in filter(None, map(str.strip, whole)):
            before = True
            yield sentence
        if piece.cut:
            written = "" if before else f"{written} ..."
    if written.strip():
        yield written.strip()
