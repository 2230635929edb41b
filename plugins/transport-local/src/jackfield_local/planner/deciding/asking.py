"""Questions back: for what is missing, and for what is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jackfield.contract.context import Mode

from jackfield_local.language.words import spoken_name
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.forms import Form
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.manner import Manner
from jackfield_local.planner.reading.tool import Parameter, Tool

_MOST_SPOKEN = 4
_SHORT_EXAMPLE = 90
_LINE = 110
_FOR_MODELS = re.compile(r"\b(?:the user|ISO|IANA|e\.g|\w+_\w+)\b", re.IGNORECASE)
_INDIRECT = re.compile(r"(?:what|who|where|how|which|when|why)\b", re.IGNORECASE)
_QUESTIONS = {
    Kind.NAME: "Who is meant? Tell me the name.",
    Kind.EMAIL: "Which e-mail address do you mean?",
    Kind.URL: "Which link do you mean?",
    Kind.ID: "Which record do you mean? Tell me its id, or what it is about.",
    Kind.RECORDS: "There are no results yet that I could use. What should I search for first?",
    Kind.LENGTH: "How long should it be?",
    Kind.ZONE: "For which place or time zone?",
    Kind.COUNTRY: "Which country is meant?",
    Kind.LOCALE: "In which language?",
}

_BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
    "multipleOf": "divisible by",
}


_WRITTEN = {
    Form.PATH: "Which {} do you mean? Write it with its folder or its ending, or in quotes.",
    Form.COMMAND: "Which {} should I run? I cannot think one up; write it as the shell takes it.",
    Form.GLOB: "Which {} do you mean? Write it with wildcards such as **/*.md, or in quotes.",
    Form.REGEX: "Which {} do you mean? Write it in quotes.",
    Form.VERBATIM: "What should the {} be? Write it word for word.",
}


def ask_for(parameter: Parameter, heard: Heard) -> str:
    """The question for an argument that is missing."""
    if parameter.kind is Kind.MOMENT:
        return _when(parameter, heard)
    if exact := _exactly(parameter):
        return exact
    if parameter.kind in _QUESTIONS:
        return _QUESTIONS[parameter.kind]
    listed = parameter.schema.get("enum")
    if parameter.kind is Kind.CHOICE and isinstance(listed, list):
        return f"Which {parameter.spoken}: {', '.join(map(str, listed))}?"
    told = _plain_clauses(parameter.description)
    if _INDIRECT.match(told):
        return f"Tell me {told[:1].lower()}{told[1:]}."
    return f"What should the {parameter.spoken} be?" + (f" ({told})" if told else "")


def cannot_ask(parameter: Parameter) -> bool:
    """Whether no answer in words would fill it: an object of parts that nobody can be asked for."""
    return parameter.kind is Kind.OBJECT


def beyond_me(tool: Tool, parameter: Parameter) -> str:
    """What is said of a tool that needs what the planner cannot fill in."""
    parts = [each.spoken for each in parameter.children if each.required]
    made_of = f" ({', '.join(parts)})" if parts else ""
    return (
        f"For “{spoken_name(tool.id)}” the {parameter.spoken} is needed, which is made of several values"
        f"{made_of}. I cannot fill that in, as a language model could, so I leave it."
    )


def bounds_of(parameter: Parameter) -> str:
    """What numbers an argument takes, in a sentence."""
    items = parameter.schema.get("items")
    schema = items if parameter.many and isinstance(items, Mapping) else parameter.schema
    whole = "a whole number" if schema.get("type") == "integer" else "a number"
    told = [
        f"{word} {schema[name]}"
        for name, word in _BOUNDS.items()
        if isinstance(schema.get(name), int | float)
    ]
    return f"The {parameter.spoken} has to be {' '.join([whole, ' and '.join(told)]).strip()}."


def _exactly(parameter: Parameter) -> str:
    """The question for what has to be handed over as it is; empty for anything else."""
    if parameter.form is not None:
        return _WRITTEN[parameter.form].format(parameter.spoken)
    if parameter.kind is Kind.TEXT and parameter.manner is Manner.POINTED:
        return f"Which {parameter.spoken} do you mean? Paste it, or write it after a colon."
    return ""


def ask_which(tools: Sequence[Tool], mode: Mode) -> str:
    """The question which of two tools is meant."""
    first, second = (_deed(tool) for tool in tools[:2])
    if mode == "voice":
        return f"Which do you mean: {first}, or {second}?"
    return f"Which do you mean?\n1. {first}\n2. {second}"


def capabilities(tools: Sequence[Tool], mode: Mode, *, brief: bool = False) -> str:
    """What can be asked for, as the guides say it; in brief without examples."""
    if not tools:
        return "No tools are installed, so there is nothing I can do."
    useful = [tool for tool in tools if not tool.composed]
    if mode == "voice":
        deeds = [f"one {in_a_clause(tool)}" for tool in useful]
        return f"I have {len(tools)} tools: {'; '.join(deeds[:_MOST_SPOKEN])}."
    lines = [f"- {in_brief(each) if brief else described(each)}" for each in useful]
    return "With the tools that are installed I can do this:\n" + "\n".join(lines)


def in_a_clause(tool: Tool) -> str:
    """What a tool does, to be said after its name."""
    return f"{tool.purpose[:1].lower()}{_to_you(_first_clause(tool.purpose[1:]))}"


def in_brief(tool: Tool) -> str:
    """What a tool does, in a line."""
    told = _to_you(tool.purpose)
    cut = max(told[:_LINE].rfind(", "), told[:_LINE].rfind(": ")) if len(told) > _LINE else -1
    return f"{told[:cut] if cut > 0 else told}."


def described(tool: Tool) -> str:
    """What a tool does, and words in which it is asked for."""
    example = next((each.says for each in tool.guide.examples if len(each.says) < _SHORT_EXAMPLE), "")
    return f"{_to_you(tool.purpose)}." + (f" For example: “{example}”" if example else "")


def _when(parameter: Parameter, heard: Heard) -> str:
    when = heard.when
    if when is not None and not when.exact:
        return "At what time?"
    if parameter.ends and when is not None:
        return "Until when, or how long?"
    return "When? Tell me the day, and the time if it matters."


def _deed(tool: Tool) -> str:
    return f"{spoken_name(tool.id)} ({tool.purpose[:1].lower()}{_to_you(tool.purpose[1:])})"


def _first_clause(text: str) -> str:
    return text.partition(",")[0].partition(":")[0]


def _plain_clauses(text: str) -> str:
    """The first sentence of a description, as far as it speaks to people."""
    clauses = text.partition(". ")[0].rstrip(".").split(", ")
    kept = next((n for n, clause in enumerate(clauses) if _FOR_MODELS.search(clause)), len(clauses))
    return ", ".join(clauses[:kept])


def _to_you(text: str) -> str:
    """What is written about the user, said to the user."""
    text = re.sub(r"\bthe user's\b", "your", text)
    text = re.sub(r"\bthe user ([a-z]+?)s\b", r"you \1", text)
    return re.sub(r"\bthe user\b", "you", text)
