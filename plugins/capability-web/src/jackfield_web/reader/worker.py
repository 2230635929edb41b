"""The process that reads: jobs come in, texts go out, until the input ends.

A page is written by strangers and parsed by a lot of code, some of it in C. So it is read in a process that
has no secrets in its environment, little memory, and no right to write files; whoever waits for it stops it
when it takes too long.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

from jackfield_web.content import ContentKind, look, media_type
from jackfield_web.reader.formats import LONGEST, PageText, UnreadablePageError, decoded, read_html, read_pdf

_MEMORY = 1024 * 1024 * 1024


def serve(jobs: BinaryIO, texts: BinaryIO) -> None:
    """Jobs are lines of JSON, each followed by as many bytes as it says; answers are lines of JSON.

    An empty line comes first and says that the reader is there.
    """
    texts.write(b"\n")
    texts.flush()
    while line := jobs.readline():
        job = json.loads(line)
        answer = answered(job, jobs.read(job["size"]))
        texts.write(json.dumps(answer).encode() + b"\n")
        texts.flush()


def answered(job: dict[str, Any], content: bytes) -> dict[str, Any]:
    """The text of a page, or why there is none."""
    try:
        read = _read(ContentKind(job["kind"]), content, job)
    except UnreadablePageError as error:
        return {"unreadable": str(error)}
    except MemoryError:
        return {"unreadable": "it takes too much memory"}
    except Exception as error:  # noqa: BLE001 - a page can break a parser in any way there is
        return {"unreadable": "it is not built as pages are", "cause": type(error).__name__}
    whole = read.whole and not job["cut"] and len(read.text) <= LONGEST
    return {
        "title": read.title,
        "text": read.text[:LONGEST],
        "links": read.links,
        "mediaType": read.media_type,
        "whole": whole,
    }


def _read(kind: ContentKind, content: bytes, job: dict[str, Any]) -> PageText:
    found = look(content) if kind is ContentKind.UNSAID else kind
    content_type, cut = job["contentType"], job["cut"]
    match found:
        case ContentKind.HTML:
            return read_html(content, content_type, job["url"], cut=cut)
        case ContentKind.PDF:
            return read_pdf(content, cut=cut)
        case ContentKind.TEXT:
            text = decoded(content, content_type, marked_up=False, cut=cut).replace("\0", "")
            named = "text/plain" if kind is ContentKind.UNSAID else media_type(content_type)
            return PageText("", text.replace("\r\n", "\n").strip(), [], named)
    raise UnreadablePageError("it is no text, whatever it is")


def confine() -> None:
    """Give up what a reader has no use for."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def prepare() -> None:
    """Import what most pages need before the first one is there."""
    import charset_normalizer  # noqa: F401
    import trafilatura  # noqa: F401


if __name__ == "__main__":
    confine()
    prepare()
    jobs, texts = sys.stdin.buffer, sys.stdout.buffer
    # A parser that prints must not be taken for an answer.
    sys.stdout = sys.stderr
    serve(jobs, texts)
