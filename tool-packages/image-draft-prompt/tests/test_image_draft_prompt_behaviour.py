"""What a prompt keeps of the brief, what it adds, and how variants differ."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_testkit import ToolTestContext
from jackfield_tool_image_draft_prompt import axes
from jackfield_tool_image_draft_prompt.handler import execute

DEFAULTS: dict[str, Any] = {"purpose": "general", "avoid": [], "variants": 4}


def draft(brief: str, **given: Any) -> list[dict[str, Any]]:
    response = execute({**DEFAULTS, "brief": brief, **given}, ToolTestContext())
    assert response.ok
    variants: list[dict[str, Any]] = response.data["variants"]
    return variants


@pytest.mark.parametrize(
    ("brief", "subject"),
    [
        ("a lighthouse", "A lighthouse"),
        ("Draw me a lighthouse.", "A lighthouse"),
        ("Can you please make a picture of a fox in the snow?", "A fox in the snow"),
        ("I'd like a nice photo of our office", "Our office"),
        ("please paint two boats", "Two boats"),
        ("generate some images of old trains", "Old trains"),
        ("Making pottery by hand", "Making pottery by hand"),
        ("a painter  painting\na picture of the sea", "A painter painting a picture of the sea"),
        ("draw", "Draw"),
        ("draw people dancing", "People dancing"),
        ("design studio at night", "Design studio at night"),
        ("show of hands in a classroom", "Show of hands in a classroom"),
    ],
)
def test_the_subject_is_the_brief_without_the_request(brief: str, subject: str) -> None:
    (variant,) = draft(brief, variants=1)
    assert variant["parts"]["subject"] == subject
    assert variant["prompt"].startswith(f"{subject}. ")


def test_without_a_medium_each_variant_has_its_own_framing_light_and_medium() -> None:
    variants = draft("a bakery")
    for part in ("style", "framing", "light"):
        assert len({each["parts"][part] for each in variants}) == 4
    assert [each["title"] for each in variants] == [
        "photo, wide view",
        "illustration, close view",
        "watercolour, centred",
        "flat graphic, unusual angle",
    ]


@pytest.mark.parametrize("style", sorted(axes.MEDIA))
@pytest.mark.parametrize("purpose", sorted(axes.FRAMINGS))
def test_a_requested_medium_is_kept_in_four_variants(style: str, purpose: str) -> None:
    variants = draft("a bakery", style=style, purpose=purpose)
    assert {each["parts"]["style"] for each in variants} == set(axes.MEDIA[style])
    assert len({each["prompt"] for each in variants}) == 4
    assert len({each["title"] for each in variants}) == 4


@pytest.mark.parametrize(
    ("brief", "medium"),
    [
        ("a watercolor of a pond", "watercolour"),
        ("pixel art of a castle", "pixel_art"),
        ("an oil painting of a storm", "painting"),
        ("a photo of a dog", "photo"),
        ("a cartoon penguin", "illustration"),
        ("logo for a bakery", "flat"),
    ],
)
def test_a_medium_in_the_brief_counts_as_requested(brief: str, medium: str) -> None:
    assert {each["parts"]["style"] for each in draft(brief)} == set(axes.MEDIA[medium])
    (other,) = draft(brief, style="line_art", variants=1)
    assert other["parts"]["style"] == axes.MEDIA["line_art"][0]


@pytest.mark.parametrize(
    "brief", ["a harbour at night", "a street in the rain", "sunset over hills", "a foggy forest"]
)
def test_light_named_in_the_brief_is_not_contradicted(brief: str) -> None:
    for each in draft(brief, style="photo", mood="cheerful"):
        assert each["parts"]["light"].startswith("The light is that of the scene")


def test_framing_named_in_the_brief_is_not_contradicted() -> None:
    assert {each["parts"]["framing"] for each in draft("close-up of a bee")} == {"Framed as described"}


@pytest.mark.parametrize("mood", sorted(axes.LIGHTS))
def test_the_mood_determines_the_light(mood: str) -> None:
    variants = draft("a bakery", style="photo", mood=mood)
    assert [each["parts"]["light"] for each in variants] == list(axes.LIGHTS[mood])
    assert all(f"The mood is {mood}." in each["prompt"] for each in variants)


def test_the_purpose_determines_shape_and_space_for_text() -> None:
    assert {each["shape"] for each in draft("a concert", purpose="banner")} == {"landscape"}
    (poster,) = draft("a concert", purpose="poster", variants=1)
    assert poster["shape"] == "portrait"
    assert "headline" in poster["prompt"]
    assert draft("a concert", purpose="poster", shape="square", variants=1)[0]["shape"] == "square"


def test_lettering_is_spelled_out_and_not_avoided() -> None:
    (variant,) = draft('a sign that says "OPEN LATE" and \u201cBar\u201d', variants=1)
    assert 'reads exactly "OPEN LATE" and "Bar"' in variant["prompt"]
    assert variant["avoid"] == "watermarks, signatures"


def test_exclusions_are_named_once() -> None:
    (variant,) = draft("a bakery", avoid=[" people ", "Watermarks", "cars."], variants=1)
    assert variant["avoid"] == "people, Watermarks, cars, lettering, signatures"


def test_style_notes_are_included() -> None:
    (variant,) = draft("a bakery", style_notes="like a travel poster of the 1930s.", variants=1)
    assert variant["parts"]["style"].endswith(", like a travel poster of the 1930s")


@given(
    brief=st.text(min_size=1, max_size=500).filter(lambda text: any(each.isalnum() for each in text)),
    avoid=st.lists(st.text(min_size=1, max_size=80), max_size=10, unique=True),
    mood=st.sampled_from([None, *axes.LIGHTS]),
    purpose=st.sampled_from(list(axes.FRAMINGS)),
)
def test_any_brief_gives_valid_prompts_for_image_generate(
    brief: str, avoid: list[str], mood: str | None, purpose: str
) -> None:
    given: dict[str, Any] = {"avoid": avoid, "purpose": purpose, **({"mood": mood} if mood else {})}
    variants = draft(brief, **given)
    assert variants == draft(brief, **given)
    for each in variants:
        assert 1 <= len(each["prompt"]) <= 4000
        assert len(each["avoid"]) <= 500
    for one, other in itertools.combinations(variants, 2):
        assert one["prompt"] != other["prompt"]
