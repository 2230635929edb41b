"""The settings tables in the documentation match the declarations, and every setting has help."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jackfield.settings import SettingsError, describe_settings, parse_settings
from settings_tables import MARKED, ROOT, declarations, generated, pages, table


def test_every_table_of_settings_is_on_one_page_and_current() -> None:
    texts = {page.relative_to(ROOT): page.read_text("utf-8") for page in pages()}
    stale = [str(page) for page, text in texts.items() if generated(text) != text]
    assert stale == [], "run `nox -s settings_docs`"
    shown = [found["name"] for text in texts.values() for found in MARKED.finditer(text)]
    assert sorted(shown) == sorted(declarations())


@pytest.mark.parametrize("name", declarations())
def test_every_setting_has_help_in_whole_sentences(name: str) -> None:
    for setting in describe_settings(declarations()[name]):
        assert re.fullmatch(r"[A-Z`].*[.?]", setting.help), f"[{name}] {setting.name}: {setting.help!r}"


def test_a_table_shows_default_value_and_meaning() -> None:
    assert table("policies.clamping") == (
        "| setting in `[policies.clamping]` | default | value | meaning |\n"
        "|---|---|---|---|\n"
        "| `voice_top_k` | `3` | an integer of at least 0 | Maximum number of results in a voice session. |\n"
    )


@pytest.mark.parametrize(("name", "written"), [("kernel.toolsets.NAME", "toolsets.NAME"), ("host", "host")])
def test_a_table_names_the_section_of_the_settings_file(name: str, written: str) -> None:
    assert table(name).startswith(f"| setting in `[{written}]` |")


def test_a_page_that_differs_from_the_declarations_is_stale() -> None:
    begin, end = "<!-- settings policies.clamping: begin -->\n", "<!-- settings policies.clamping: end -->\n"
    assert generated(f"{begin}| old |\n{end}") == f"{begin}{table('policies.clamping')}{end}"


def test_the_settings_example_for_authors_is_read_as_documented() -> None:
    page = (ROOT / "docs" / "offer-settings.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    imports = "from dataclasses import dataclass\nfrom typing import Annotated\n"
    imports += "from jackfield.settings import *\n"
    defined: dict[str, Any] = {}
    exec(compile(imports + example, "docs/offer-settings.md", "exec", dont_inherit=True), defined)
    mail = defined["MailSettings"]
    with pytest.raises(SettingsError) as raised:
        parse_settings(mail, {"most": 0, "folder": [], "password": "hunter2"}, "[capabilities.mail]")
    assert str(raised.value).splitlines() == [
        "[capabilities.mail] folder: unknown setting; did you mean 'folders'?",
        "[capabilities.mail] password: unknown setting; a secret does not belong in this file: put it into "
        "an environment variable, and set password_env to the name of that variable",
        "[capabilities.mail] most: expected an integer number of messages from 1 to 100, got 0",
    ]
    with pytest.raises(SettingsError, match="password_env: missing; the server asks for a password"):
        parse_settings(mail, {"server": "https://mail.example"}, "[capabilities.mail]")
