"""Sentences that request an image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_images.vocabulary import ImageVocabulary

ASKED = [
    "Draw me a lighthouse.",
    "draw a fox in the snow",
    "Please paint a boat at dusk",
    "Could you sketch the old harbour for me?",
    "Make me a picture of a red bicycle",
    "Can you generate an image of our office as a treehouse?",
    "create three watercolour illustrations for the menu",
    "I want a picture of my dog in space",
    "I'd like an illustration for the newsletter",
    "I\u2019d love a poster of Lisbon",
    "I would like you to make a logo for my bakery",
    "We need a banner for the website, something blue",
    "Thanks! Now make another picture, with more snow",
    "Hey, can I have a photo of a castle?",
    "Could I see a picture of that?",
    "How about a cartoon of a penguin?",
    "What about an image of the team on the moon?",
    "A picture of the harbour at night, please.",
    "Image of a lighthouse",
    "Nice. And another image please",
    "I have a party next week, could you design a small invitation poster?",
    "Give me a couple of pictures of old trains",
    "Generate a simple flat icon",
    "I don't like the text but draw a picture of it",
    "We do not have one yet. Please design our logo.",
    "illustrate the story for my son",
    "DRAW A CAT",
    "Draw a street without cars",
    "I want to see a picture of a volcano",
    "Please go ahead and make the room nice. Then draw me a picture!",
]

NOT_ASKED = [
    "",
    "hello",
    "Don't draw anything",
    "please do not make a picture",
    "do not, under any circumstances, draw a picture",
    "Don\u2019t generate images, just describe it",
    "No pictures please",
    "Never draw people",
    "Draw nothing",
    "Describe the harbour without making an image",
    "Tell me about it instead of drawing a picture",
    "make a table, not a picture",
    "How do you make a picture?",
    "What does it cost to generate an image?",
    "Do you make pictures?",
    "Did you draw a picture yesterday?",
    "Why did you make an image?",
    "I make pictures for a living",
    "They draw comics",
    "I used to make paintings",
    "I have a picture of a dog",
    "I like pictures",
    "Is this a photo?",
    "The slides show images of the harbour",
    "My sister wants a portrait",
    "She needs an image of the harbour",
    "Make a summary of this picture",
    "Give me the text of the image",
    "Send me the picture",
    "make the picture smaller",
    "Write a caption for the photo",
    "draw a conclusion from the report",
    "Draw up a contract",
    "Sketch out a plan for May",
    "Draw me a picture. Never mind, forget it.",
    "Make an image of a tree, no thanks",
    "if you make a picture I will leave",
    "Tell me how to draw a horse",
    "What is a picture worth?",
    "The best picture of the year",
    "I need you to summarise the report about images",
    "Book a table for two at seven",
    "Imagine a lighthouse",
    "paragraph of the drawingboard",
]


@pytest.mark.parametrize("said", ASKED)
def test_requests_for_an_image_are_recognised(said: str) -> None:
    assert ImageVocabulary().asks_for_picture(said)


@pytest.mark.parametrize("said", NOT_ASKED)
def test_other_sentences_are_not_requests(said: str) -> None:
    assert not ImageVocabulary().asks_for_picture(said)


@pytest.mark.parametrize("said", ASKED)
@pytest.mark.parametrize("negation", ["Don't", "Please do not", "never", "Stop, do not"])
def test_negated_sentences_are_not_requests(said: str, negation: str) -> None:
    one = " ".join(said.replace("but", "and").split(".")[-1].split()) or said.rstrip(".")
    for mark in ".!?":
        one = one.replace(mark, "")
    assert not ImageVocabulary().asks_for_picture(f"{negation} {one}")


@given(st.text(max_size=300))
def test_any_text_is_classified_without_an_error(said: str) -> None:
    assert ImageVocabulary().asks_for_picture(said) in (True, False)


GERMAN = ImageVocabulary(
    verbs=("mach", "erstelle", "erstellen", "zeig", "möchte"),
    drawing_verbs=("zeichne", "zeichnen", "male", "malen"),
    nouns=("bild", "bilder", "foto", "logo"),
    negations=("nicht", "kein", "keine", "nie", "ohne"),
)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Bitte zeichne mir einen Leuchtturm", True),
        ("Mach mir ein Bild von einem Hund", True),
        ("Kannst du mir ein Bild erstellen?", True),
        ("Ich möchte ein Logo für die Bäckerei", True),
        ("Mach kein Bild", False),
        ("Zeichne nicht", False),
        ("Zeichne bitte nicht", False),
        ("Zeichne eine Straße ohne Autos", True),
        ("Bitte nicht zeichnen", False),
        ("Wie spät ist es?", False),
        ("Draw me a lighthouse", False),
    ],
)
def test_other_languages_are_supported_with_configured_words(said: str, asked: bool) -> None:
    assert GERMAN.asks_for_picture(said) is asked
