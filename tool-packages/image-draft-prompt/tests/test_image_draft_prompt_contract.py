"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests

STYLE = "Flat vector illustration with geometric shapes and no gradients"
FRAMING = "One centred object from the front with even margins, readable at small size"
LIGHT = "Clear, balanced tones"


class TestImageDraftPrompt(ToolContractTests):
    tool_id = "image_draft_prompt"
    examples = (
        Example(
            {"brief": "a paper boat", "style": "flat", "purpose": "icon", "variants": 1},
            data={
                "variants": [
                    {
                        "title": "flat graphic, front view",
                        "prompt": f"A paper boat. {STYLE}. {FRAMING}. {LIGHT}.",
                        "avoid": "lettering, watermarks, signatures",
                        "shape": "square",
                        "parts": {
                            "subject": "A paper boat",
                            "style": STYLE,
                            "framing": FRAMING,
                            "light": LIGHT,
                            "mood": None,
                        },
                    }
                ]
            },
            name="as the guide shows it",
        ),
        Example({"brief": "a bakery"}, data=lambda data: len(data["variants"]) == 3, name="the defaults"),
        Example(
            {
                "brief": "x" * 500,
                "style_notes": "y" * 200,
                "avoid": [str(number) * 80 for number in range(10)],
                "mood": "dramatic",
                "purpose": "poster",
                "variants": 4,
            },
            name="the longest",
        ),
        Example({"brief": " ?! "}, error="PERMANENT"),
        Example({"brief": ""}, error="VALIDATION"),
        Example({"brief": "x" * 501}, error="VALIDATION"),
        Example({"brief": "x", "style": "dadaist"}, error="VALIDATION"),
        Example({"brief": "x", "variants": 5}, error="VALIDATION"),
        Example({"brief": "x", "avoid": ["a"] * 2}, error="VALIDATION"),
        Example({"brief": "x", "mood": "sleepy"}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )
