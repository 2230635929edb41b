"""E-mail addresses, checked with the syntax rules of email-validator, without DNS queries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from email_validator import EmailNotValidError, ValidatedEmail, validate_email

from jackfield_tool_extract_contacts.entities import Email, Url
from jackfield_tool_extract_contacts.mailboxes import mailbox_spans
from jackfield_tool_extract_contacts.occupied_spans import OccupiedSpans
from jackfield_tool_extract_contacts.word_lists import FILE_ENDINGS

# `*@example.org` stands for many addresses and is not an address itself.
_WILDCARD = re.compile(r"[-+.]*\*[-+.*]*")


def find_emails(text: str, urls: Sequence[Url]) -> list[Email]:
    """Return all addresses outside links, in the order of the text."""
    inside_link = OccupiedSpans(urls)
    judged: dict[str, ValidatedEmail | None] = {}
    entities = []
    for start, end in mailbox_spans(text):
        written = text[start:end]
        if inside_link(start + written.rindex("@")):
            continue
        if written not in judged:
            judged[written] = _judge(written)
        verdict = judged[written]
        if verdict:
            entities.append(Email(start, end, written, verdict.normalized, _ascii_form(verdict)))
    return entities


def _judge(address: str) -> ValidatedEmail | None:
    local, _, domain = address.rpartition("@")
    top_level = domain.rpartition(".")[2].lower()
    if len(top_level) < 2 or top_level in FILE_ENDINGS or _WILDCARD.fullmatch(local):
        return None
    try:
        return validate_email(
            address,
            check_deliverability=False,
            allow_quoted_local=True,
            allow_domain_literal=True,
            strict=True,  # a local part may become too long when it is normalised
        )
    except EmailNotValidError:
        return None


def _ascii_form(verdict: ValidatedEmail) -> str | None:
    return verdict.ascii_email if verdict.ascii_email != verdict.normalized else None
