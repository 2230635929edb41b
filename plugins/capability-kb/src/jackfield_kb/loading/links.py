"""Addresses: which may be shown as a link, and which lead to LinkedIn."""

from __future__ import annotations

from urllib.parse import urlsplit

_SCHEMES = ("http", "https", "mailto")
_LINKEDIN = "linkedin.com"


def is_safe(url: str) -> bool:
    """Whether following it can do no more than open a page or a letter."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme.lower() not in _SCHEMES or any(character.isspace() for character in url):
        return False
    return bool(parts.netloc) if parts.scheme.lower() != "mailto" else bool(parts.path)


def linkedin(text: str) -> str | None:
    """The address of a profile on LinkedIn, with its scheme; None for any other text."""
    text = text.strip()
    url = text if "://" in text else f"https://{text}"
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return None
    if is_safe(url) and (host == _LINKEDIN or host.endswith(f".{_LINKEDIN}")):
        return url
    return None
