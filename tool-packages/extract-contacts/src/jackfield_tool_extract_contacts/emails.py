"""E-mail addresses, judged by email-validator's syntax rules; no name server is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from email_validator import EmailNotValidError, ValidatedEmail, validate_email

from jackfield_tool_extract_contacts.finds import Email, Url
from jackfield_tool_extract_contacts.mailboxes import mailbox_spans
from jackfield_tool_extract_contacts.spans import Cover
from jackfield_tool_extract_contacts.vocabulary import FILE_ENDINGS

# `*@example.org` stands for many addresses and is none.
_WILDCARD = re.compile(r"[-+.]*\*[-+.*]*")


def find_emails(text: str, urls: Sequence[Url]) -> list[Email]:
    """All addresses outside links, in the order of the text."""
    inside_link = Cover(urls)
    judged: dict[str, ValidatedEmail | None] = {}
    finds = []
    for start, end in mailbox_spans(text):
        written = text[start:end]
        if inside_link(start + written.rindex("@")):
            continue
        if written not in judged:
            judged[written] = _judge(written)
        verdict = judged[written]
        if verdict:
            finds.append(Email(start, end, written, verdict.normalized, _ascii_form(verdict)))
    return finds


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
            strict=True,  # a local part may grow too long when it is normalised
        )
    except EmailNotValidError:
        return None


def _ascii_form(verdict: ValidatedEmail) -> str | None:
    return verdict.ascii_email if verdict.ascii_email != verdict.normalized else None
