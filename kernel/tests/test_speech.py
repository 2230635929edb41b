"""Text that is made plain enough to be spoken."""

from __future__ import annotations

import pytest
from jackfield.speech import plain


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (
            "# Keys\n\nAsk **Otto** or read [the page](https://example.org).",
            "Keys Ask Otto or read the page.",
        ),
        ("first -- second --- third", "first second third"),
        ("| a | b |\n|---|---|", "a b"),
        ("Remove it with `jackfield kb remove --sample`.", "Remove it with `jackfield kb remove --sample`."),
    ],
)
def test_markup_is_removed_but_not_the_options_of_a_command(text: str, spoken: str) -> None:
    assert plain(text) == spoken
