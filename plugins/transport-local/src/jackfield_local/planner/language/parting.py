"""Words that leave no doubt that somebody wants to end the conversation.

A call that is ended by mistake cannot be taken up again by saying so, and a microphone gives half a sentence
as readily as a whole one: a word that only sounds like an end ("stop", "hang on", "the call") is none.
"""

from __future__ import annotations

import re

_CALL = r"(?:voice |phone )?(?:call|conversation|session|talk|chat|line)"
_END = r"(?:end|stop|finish|close|quit|leave|terminate|drop|disconnect|cut)"
_WRITING = r"(?:text|texting|typing|writing|the chat|the keyboard|the text chat)"
_OVER = (
    r"(?=\s*(?:$|[.,;!?]"
    r"|(?:and|so|then|now|here|please|thanks|thank|for (?:now|today|me)|bye|goodbye|see)\b))"
)
"""Nothing follows that makes it something else: "I'm done" ends it, "I'm done with the lamps" does not."""

_PARTING = re.compile(
    "|".join(
        (
            r"\b(?:good\s?-?)?bye\b(?! the\b)",
            r"\bgood night\b" + _OVER,
            r"\bfarewell\b" + _OVER,
            r"\b(?:see|catch|speak to|talk to) (?:you|ya)(?: (?:again|all))?"
            r"(?: (?:later|soon|tomorrow|then|around|next (?:time|week)|in the chat))?" + _OVER,
            r"\buntil next time\b",
            r"\bhave an? (?:nice|good|great|lovely) (?:day|one|evening|night|weekend|time)\b" + _OVER,
            r"\b(?:hang|hanging) up\b(?: the (?:phone|call|line))?" + _OVER,
            rf"\b{_END}(?: off)? (?:this|the|our|my) {_CALL}\b" + _OVER,
            r"\b(?:go|going|switch|switching|move|change|get|come) (?:back |over )*(?:to|into) "
            rf"{_WRITING}\b",
            rf"\b(?:go on|continue|carry on) (?:in|by) (?:{_WRITING})\b",
            r"\bi(?:'d| would) rather (?:type|write|text)\b",
            r"\bthat(?:'s| is| was| will be|'ll be)(?: really| about)? "
            r"(?:all|everything|it for (?:now|today))"
            r"(?: (?:that )?i (?:need|needed|want|wanted))?" + _OVER,
            r"\b(?:i'm|i am|we're|we are) (?:all )?(?:done|finished)" + _OVER,
            r"\b(?:i|we)(?: really)?(?:'ve got to| have to| must| need to| should| gotta) (?:go|leave|run)"
            + _OVER,
        )
    ),
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:don't|do not|never|not|before|if|unless|did|didn't|why|when|how|who|is|was|were)\b[^.,;!?]*$",
    re.IGNORECASE,
)


def is_parting(text: str) -> bool:
    """Whether the end of the conversation is plainly wished for, and neither denied nor asked about."""
    return any(not _NOT.search(text[: found.start()]) for found in _PARTING.finditer(text))
