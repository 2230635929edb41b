"""The reader process: reads jobs from stdin and writes texts to stdout until the input ends.

Pages are untrusted, and the parsers are large and partly written in C. So they run in a process that has no
secrets in its environment, limited memory and no permission to write files. The pool kills a reader that
takes too long.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

from jackfield_web.content import ContentKind, look, media_type
from jackfield_web.reader.formats import LONGEST, PageText, UnreadablePageError, decoded, read_html, read_pdf

_MEMORY = 1024 * 1024 * 1024


def serve(jobs: BinaryIO, texts: BinaryIO) -> None:
    """Serve jobs: each is a line of JSON followed by `size` bytes; each answer is a line of JSON.

    An empty line comes first, to signal that the reader is ready.
    """
    texts.write(b"\n")
    texts.flush()
    while line := jobs.readline():
        job = json.loads(line)
        answer = answered(job, jobs.read(job["size"]))
        texts.write(json.dumps(answer).encode() + b"\n")
        texts.flush()


def answered(job: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Extract the text of a page, or return why that fails."""
    try:
        read = _read(ContentKind(job["kind"]), content, job)
    except UnreadablePageError as error:
        return {"unreadable": str(error)}
    except MemoryError:
        return {"unreadable": "it takes too much memory"}
    except Exception as error:  # noqa: BLE001 - a page can make a parser fail in any way
        return {"unreadable": "its structure is invalid", "cause": type(error).__name__}
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
    raise UnreadablePageError("it is not text")


def confine() -> None:
    """Limit memory, and forbid writing files and core dumps."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def prepare() -> None:
    """Import the usual parsers before the first page arrives."""
    import charset_normalizer  # noqa: F401
    import trafilatura  # noqa: F401


if __name__ == "__main__":
    confine()
    prepare()
    jobs, texts = sys.stdin.buffer, sys.stdout.buffer
    # Output printed by a parser must not be taken for an answer.
    sys.stdout = sys.stderr
    serve(jobs, texts)
