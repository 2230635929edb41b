"""The phrases that carry a request, and what is left of it without them."""

from __future__ import annotations

import re


def _any(phrases: str) -> str:
    """A pattern of several phrases; they stand in lines, or between slashes."""
    return "(?:" + "|".join(re.split(r"\s*(?:/|\n)\s*", phrases.strip())) + ")"


_POLITE = (
    _any(
        """please / pls / kindly / hey / hi / hello / ok / okay / so / well / now / then / and / also
        um / uh / oh
        yes / no / sure / alright / right / great / thanks / thank you / jackfield / assistant"""
    )
    + r"\b[\s,!.:;-]*"
)
_ASKING = (
    _any(
        """(?:can|could|would|will|may|might) (?:you|we|i)(?: please| maybe)?(?: be able to| like to)?
        would you mind / do you mind / are you able to / is it possible to / do you know / can i
        may i / could i
        i(?:'d| would)(?: also| really| just| still)* (?:like|love)(?: for)?(?: you)?(?: to)?
        i(?:'d| would) rather
        i(?: also| really| just| still)* (?:want|need|wish|have|would like)(?: you)?(?: to)?
        i(?:'m| am) (?:looking for|after|trying to)
        we (?:want|need)(?: to)? / let(?:'s| us) / help (?:me|us)(?: to)? / try to / go ahead and
        how about / what about"""
    )
    + r"\b\s*"
)
_LOOKING = (
    _any(
        """tell (?:me|us)(?: more)? / show(?: me| us)? / give (?:me|us) / send (?:me|us)
        get (?:me|us)? / fetch(?: me)? / check(?: on)? / pull up / dig up
        bring(?: me)?(?: up)? / find(?: me| us)?(?: out)? / search(?: for| in| through)?
        (?:(?:have|take) a )?look(?: up| for| into| in| through| at)? / list / see / read / open
        explain / describe / summari[sz]e / remind(?: me| us)?(?: of)? / know / learn"""
    )
    + r"\b\s*"
)
_WONDERING = (
    r"(?:(?:until |till |since |by |at |from )?(?:what time(?! is it)|what(?:'s| is| are| was| were)"
    r"|who(?:'s| is| are)|where(?:'s| is| are)|when(?:'s| is| are)|which|what|who|whom|where|when"
    r"|how(?: many| much| long| often)?|why|whether|if)\b(?: do| does| did| can| should| would| will"
    r"| has| have)?(?: we| i| you| they| one)?(?: (?:know|have|say|says|ask|find|get|need|use))?"
    r"(?: (?:about|on))?|(?:is|are|was|were) there(?: anything| something| any| some| a| an)?"
    r"|do (?:we|you|i|they) (?:have|know)|have we|has anyone)\b\s*"
)
_ABOUT = (
    r"(?:(?:any|some|more|all the|the)?\s*(?:info|information|details?|anything|something|stuff"
    r"|facts|news)?\s*"
    r"(?:about|on|regarding|concerning|of)\b)\s*"
)
_LEADING = re.compile(rf"^(?:{_POLITE}|{_ASKING}|{_LOOKING}|{_WONDERING}|{_ABOUT})", re.IGNORECASE)
_LEADING_WISH = re.compile(rf"^(?:{_POLITE}|{_ASKING})", re.IGNORECASE)
_INDIRECT = re.compile(
    rf"^(?:{_POLITE}|{_ASKING})*(?:tell (?:me|us)|let (?:me|us) know|know|i wonder)\s+"
    r"(?=(?:what|who|whom|whose|where|when|which|why|how)\b)",
    re.IGNORECASE,
)
_MAKING = re.compile(
    "^"
    + _any(
        """create / make / generate / draw / paint / sketch / design / produce / render / write
        draft / suggest
        propose / prepare / compose / build / put / add / book / schedule / set up / set / plan / arrange
        organi[sz]e / block off / block out / block / reserve / enter / save / note / pencil in / come up with
        think of / give(?: me| us)? / get(?: me| us)? / show(?: me| us)?"""
    )
    + r"\b\s*(?:me |us |down )?",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"[\s,]*\b"
    + _any(
        """please / pls / thanks / thank you / for me / for us / right now / if you can / if possible
        would you
        will you / instead / again / best / asap"""
    )
    + r"[\s.!?]*$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:a|an|the|some|any|my|our|your|new|all|every|few|couple of)\s+", re.IGNORECASE)
_EDGE = re.compile(
    r"^(?:(?:and|or|to|of|for|with|on|in|at|by|that|which|it|is|are|into|from|about)\s+)+"
    r"|(?:\s+(?:and|or|to|of|for|with|on|in|at|by|into|from|the|a|an|my|about|is|are|it|called"
    r"|named|titled|invite"
    r"|inviting|using|as)\b)+[\s?!.,]*$",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"\b(?:i(?:'m| am) (?:looking for|after|missing)|looking for|i (?:need|want)|i(?:'d| would) like)"
    r"\s+(?:the|our|my)\b",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"(?:(?:that|this|it|you|we|they|he|she)(?:'(?:s|re)| is| was| were| are| has| have)\b|what an?\b"
    r"|how (?:nice|funny|sad|odd)\b|i(?:'m| am| was| feel| don't| do not)\s+(?!looking|after|trying|not sure)"
    r"|i (?:really )?(?:love|like|hate|miss) (?:you|it|this|that)\b"
    r"|welcome\b|happy\b)",
    re.IGNORECASE,
)
_ASKED = r"(?:how|where|when|why|what|which|who)?(?: \w+){0,3}? ?\b"
_OF_THE_AGENT = re.compile(
    rf"(?:(?:and|so|but|well|hey|hi|hello|ok)\b[\s,]*)*"
    rf"(?:{_ASKED}(?:are|were) you\b(?! (?:able|looking|free|busy))"
    rf"|{_ASKED}(?:do|did|can|could|will|would) you (?:also |even |really |ever )?"
    + _any(
        """live / like / love / hate / feel / think / speak / understand / hear / sleep / eat / drink / dream
        believe / want / learn / work / come from / enjoy / trust / see me / know me / remember me
        have feelings / have friends / have a (?:name|family|soul|heart|brain|body|job)"""
    )
    + r"\b|(?:what|who)(?:'s| is) your "
    r"(?:name|age|\w*favou?rite|purpose|job|creator|owner|maker|father|mother)\b"
    r"|who(?:m)? am i (?:talking|speaking|chatting|writing) (?:to|with)\b"
    r"|who (?:made|built|created|owns|wrote|programmed|trained|invented|designed) you\b)",
    re.IGNORECASE,
)
_MADE_UP = re.compile(
    r"(?:tell|write|sing|make(?: up)?|invent|give|read|recite|compose|do you know)(?: me| us)?"
    r"(?: an?| another| some| one more)?(?: \w+){0,2} "
    r"(?:poems?|story|stories|jokes?|riddles?|songs?|rhymes?|tales?|limericks?|haikus?|anecdotes?|lullab(?:y|ies))\b",
    re.IGNORECASE,
)
_SHORT = 40
_CORRECTING = re.compile(
    r"^(?:(?:no|nope|sorry|oops|wait|actually|rather|pardon|i mean|i meant|i said|make (?:it|that)|better)\b"
    r"[\s,.:-]*)+",
    re.IGNORECASE,
)
_TIDIER = [
    (re.compile(r"[\u2019\u2018]"), "'"),
    (re.compile(r"\b(what|who|where|when|how|that)s\b(?!')", re.IGNORECASE), r"\1's"),
    (re.compile(r"\b(don|didn|doesn|isn|can|won)t\b(?!')", re.IGNORECASE), r"\1't"),
    (re.compile(r"\bi(?=\s+(?:am|have|want|need|get|do|was|would|should|can|could|like)\b|')"), "I"),
    (re.compile(r"\bim\b", re.IGNORECASE), "I'm"),
    (re.compile(r"\b(?:'til|till)\b", re.IGNORECASE), "until"),
]
_HESITATION = re.compile(
    r"(?:\W*(?:h+m+|m+h+m*|u+h*m*|e+h*r*m+|e+h+|e+r+m*|a+h+|o+h+|well)\W*)+", re.IGNORECASE
)
_QUESTION = re.compile(
    r"^(?:(?:hey|hi|ok|so|and|well)[, ]+)?(?:(?:until|till|since|from|by|at|for|on|in) (?=what|when|which))?"
    r"(?:what|who|whom|whose|where|when|which|why|how|is|are|was|were|do|does|did"
    r"|has|have|am|should|any|anything|got any)\b|\?\s*$",
    re.IGNORECASE,
)
_THING_ENDS = re.compile(
    r"\b(?:of|for|about|on|in|with|that|who|which|at|from|to|is|are|am|do|does|did|look|by|as|and"
    r"|or|between|today|tomorrow)\b|[,:;?.]",
    re.IGNORECASE,
)


def tidied(text: str) -> str:
    """A request with the apostrophes that people leave out, and one word for each of a few pairs."""
    for pattern, better in _TIDIER:
        text = pattern.sub(better, text)
    return text


def direct(text: str) -> str:
    """A question that was put into a wish, as a question: "tell me how many there are"."""
    return _INDIRECT.sub("", text, count=1)


def corrects(text: str) -> bool:
    """Whether the words begin as those do that take something back."""
    return bool(_CORRECTING.match(text))


def corrected(text: str) -> str:
    """What is said in the place of what was said before: "4 pm" of "no, make it 4 pm"."""
    return _CORRECTING.sub("", text)


def is_question(text: str) -> bool:
    """Whether something is asked, rather than wished for."""
    wish = _peeled(_trimmed(text), _LEADING_WISH)
    return bool(_QUESTION.search(wish)) and not _MAKING.match(wish)


def seeks(text: str) -> bool:
    """Whether somebody wants to know something: a question, or a wish to look something up."""
    wish = _peeled(_trimmed(text), _LEADING_WISH)
    return is_question(text) or bool(re.match(_LOOKING, wish, re.IGNORECASE) or _MISSING.search(text))


def is_hesitation(text: str) -> bool:
    """Whether nothing was said but "hmm" or "er"."""
    return len(text) < _SHORT and bool(_HESITATION.fullmatch(text.strip()))


def is_made_up(text: str) -> bool:
    """Whether something is wanted that somebody would have to think up: "tell me a story"."""
    return bool(_MADE_UP.match(_peeled(_trimmed(text), _LEADING_WISH)))


def is_about_the_agent(text: str) -> bool:
    """Whether somebody wants to know something of whom they talk to: "where do you live?"."""
    return bool(_OF_THE_AGENT.match(text.strip()))


def is_remark(text: str) -> bool:
    """Whether something is said about how things are, rather than asked or wished."""
    return bool(_REMARK.match(text.strip())) and not text.rstrip().endswith("?")


def names_a_thing(text: str) -> bool:
    """Whether all that is said is a thing: "I need the keys", "the opening hours"."""
    return bool(
        re.match(r"(?:the|my|our|some|any|an?)\s", _peeled(_trimmed(text), _LEADING_WISH), re.IGNORECASE)
    )


def thing(text: str) -> str:
    """The noun that a request is for: the pictures in "make two pictures of a boat"; empty when unclear."""
    run = noun_phrase(text)
    return run[-1].lower() if 0 < len(run) <= 4 else ""


def noun_phrase(text: str) -> list[str]:
    """The words that name what a request is for, up to what says more about it."""
    rest = subject(wish(text)) if seeks(text) else wish(text)
    return _THING_ENDS.split(bare(rest), maxsplit=1)[0].split()


def subject(text: str) -> str:
    """What a question or a search is about."""
    return _edged(_peeled(_trimmed(text), _LEADING)) or text.strip(" ?!.")


def is_order(text: str) -> bool:
    """Whether it begins with a verb that has something made or done."""
    return bool(_MAKING.match(_peeled(_trimmed(text), _LEADING_WISH)))


def verb(text: str) -> str:
    """The verb with which a wish begins; empty for a question and for a thing, such as opening hours."""
    if is_question(text):
        return ""
    first = re.match(
        r"(?!(?:the|an?|my|our|your|[a-z]{3,}ing)\b)[a-z]+",
        _peeled(_trimmed(text), _LEADING_WISH),
        re.IGNORECASE,
    )
    return first.group().lower() if first else ""


def wish(text: str) -> str:
    """What is wished for, without the words that wish and the verb that does it."""
    rest = _peeled(_trimmed(text), _LEADING_WISH)
    rest = _MAKING.sub("", rest, count=1) or rest
    return rest.strip(" ?!.,;:")


def bare(text: str) -> str:
    """A phrase without its article and without words that lead nowhere."""
    before = None
    while before != text:
        before, text = text, _ARTICLE.sub("", _edged(text))
    return text


def polite_stripped(text: str) -> str:
    """A request without greetings and courtesies."""
    return _peeled(_trimmed(text), _LEADING_WISH)


def clauses(text: str) -> list[str]:
    """The parts of an utterance that could each stand alone."""
    parts = re.split(r"[.;!?]+\s+|,\s+(?:and\s+)?|\s+(?:and|then|so that we can|so we can|to)\s+|\n+", text)
    return [part.strip(" .!?,") for part in parts if part.strip(" .!?,")]


def _trimmed(text: str) -> str:
    text = " ".join(text.split()).strip(" .!?,;")
    before = None
    while before != text:
        before, text = text, _TRAILING.sub("", text).strip(" .!?,;")
    return text


def _peeled(text: str, pattern: re.Pattern[str]) -> str:
    before = None
    while before != text and text:
        before, text = text, pattern.sub("", text, count=1).lstrip(" ,:;")
    return text or before or ""


def _edged(text: str) -> str:
    before = None
    while before != text:
        before, text = text, _EDGE.sub("", text).strip(" ?!.,;:")
    return text
