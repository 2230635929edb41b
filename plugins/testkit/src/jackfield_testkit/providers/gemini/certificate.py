"""A certificate for the loopback: Google's SDK speaks to Live over TLS only, and checks whom it speaks to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import trustme


class Certificate(NamedTuple):
    """Files: what the server shows, and what a client has to trust."""

    shown: Path
    trusted: Path


@contextmanager
def certificate(host: str) -> Iterator[Certificate]:
    """Made by an authority that nobody else knows, and gone with it."""
    with tempfile.TemporaryDirectory(prefix="jackfield-gemini-") as folder:
        authority = trustme.CA()
        made = Certificate(Path(folder) / "server.pem", Path(folder) / "ca.pem")
        authority.issue_cert(host).private_key_and_cert_chain_pem.write_to_path(made.shown)
        authority.cert_pem.write_to_path(made.trusted)
        yield made
