"""What the planner cannot do, said plainly, with the words in which it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_local.language.words import spoken_name
from jackfield_local.planner.reading.forms import Form
from jackfield_local.planner.reading.tool import Parameter, Tool


def beyond_the_planner(tool: Tool, missing: Sequence[Parameter], args: Mapping[str, Any]) -> str:
    """That several texts would have to be thought up, and how to give them; empty where one is missing."""
    texts = [each for each in missing if each.form is Form.VERBATIM]
    if len(texts) < 2:
        return ""
    named = " and ".join(f"the {each.spoken}" for each in texts)
    said = [f"{each.spoken} “{args.get(each.name, '...')}”" for each in tool.required]
    return (
        f"Finding {named} from that needs a language model, and I am none. "
        f"I can do it when you write each in quotes: {spoken_name(tool.id)}, {', '.join(said)}."
    )
