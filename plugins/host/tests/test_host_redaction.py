"""Secrets do not reach the log, however they are logged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
from host_harness import token_protocol
from hypothesis import assume, given
from hypothesis import strategies as st
from jackfield_host.logs import REDACTED, RedactionFilter, install_redaction, redact
from jackfield_host.security.api_keys import new_key
from uvicorn.logging import AccessFormatter

SAFE = st.text("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789-_", min_size=16, max_size=64)

FORMS: dict[str, Callable[[str], str]] = {
    "bearer": lambda secret: f"Authorization: Bearer {secret}",
    "bearer, encoded": lambda secret: f"authorization=bearer%20{secret}",
    "basic": lambda secret: f"authorization: basic {secret}",
    "key": lambda secret: f"jf_phone-app_{secret}",
    "subprotocol": lambda secret: f"jackfield.1, jackfield.token.{secret}",
    "openai": lambda secret: f"sk-{secret}",
    "key in an escaped address": lambda secret: f"/x?q=%22jf_phone_{secret}%22",
    "openai in an escaped address": lambda secret: f"/x?q=%3Dsk-{secret}",
    "jwt in an escaped address": lambda secret: f"/x?q=%22eyJhbGciOiJSUzI1NiJ9.{secret}.{secret}",
    "escaped query": lambda secret: f"/login?next=%2Fx%3Ftoken%3D{secret}",
    "openai project": lambda secret: f"sk-proj-{secret}",
    "google": lambda secret: f"AIzaSy{secret}",
    "jwt": lambda secret: f"eyJhbGciOiJSUzI1NiJ9.{secret}.{secret}",
    "token in an address": lambda secret: f"GET /ws/text?mode=x&token={secret}&a=b",
    "access token in an address": lambda secret: f"https://x.example/?access_token={secret}#top",
    "key in an address": lambda secret: f"/v1/models?key={secret}",
    "api key": lambda secret: f"api_key={secret}",
    "variable": lambda secret: f"OPENAI_API_KEY={secret}",
    "json": lambda secret: json.dumps({"resume_token": secret, "text": "hello"}),
    "mapping": lambda secret: repr({"password": secret}),
    "bytes": lambda secret: repr({b"x": 1, "client_secret": secret.encode()}),
    "confirmation": lambda secret: f"POST /confirmations/{secret}?x=1 HTTP/1.1",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@given(secret=SAFE, before=st.text(max_size=20), after=st.text(max_size=20))
def test_every_form_of_secret_is_redacted(
    form: Callable[[str], str], secret: str, before: str, after: str
) -> None:
    assume(secret not in before + after)
    shown = redact(f"{before} {form(secret)} {after}")
    assert secret not in shown
    assert REDACTED in shown


@given(st.text(max_size=200))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(SAFE)
def test_only_the_secret_is_removed_from_a_line(secret: str) -> None:
    assert redact(f"GET /events?token={secret}&mode=voice 200").endswith("&mode=voice 200")
    assert redact(json.dumps({"token": secret, "ok": True})) == json.dumps({"token": REDACTED, "ok": True})


@pytest.mark.parametrize(
    "text",
    [
        '127.0.0.1:5000 - "GET /tools/kb_search?q=monkey&turkeys HTTP/1.1" 200',
        "registry 1.2.0 with 12 tools, 830 tokens of declarations",
        "The token has expired; get a new one.",
        "key file keys.pem, tokens: 12, the keyboard",
        "eyes.on.the.prize, task-1234567890, risk-1234567890",
        "https://agent.example/confirmations",
    ],
)
def test_ordinary_lines_are_unchanged(text: str) -> None:
    assert redact(text) == text


def test_the_name_of_a_key_is_shown() -> None:
    assert redact(new_key("phone-app", "ada").key + "!") == f"jf_phone-app_{REDACTED}!"


Log = tuple[logging.Logger, io.StringIO]


@pytest.fixture
def log() -> Iterator[Log]:
    logger = logging.getLogger("jackfield-test-redaction")
    handler = logging.StreamHandler(io.StringIO())
    handler.addFilter(RedactionFilter(["hunter2-hunter2", "hunter2-hunter2-long", "abc"]))
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    yield logger, handler.stream
    logger.removeHandler(handler)


KEY = new_key("phone", "ada").key
SECRET = KEY.removeprefix("jf_phone_")


def test_arguments_are_redacted(log: Log) -> None:
    logger, stream = log
    logger.info("came with %s and %d%%", KEY, 7)
    logger.info("came with token=%s", SECRET)
    logger.info("came with %(who)s", {"who": KEY})
    logger.info("headers %r", {"Authorization": f"Bearer {SECRET}"})
    logger.info(ValueError(KEY))
    logger.info("failed: %s", ValueError(KEY))
    assert SECRET not in stream.getvalue()
    assert stream.getvalue().splitlines()[:2] == [
        f"came with jf_phone_{REDACTED} and 7%",
        f"came with token={REDACTED}",
    ]


def test_tracebacks_are_redacted(log: Log) -> None:
    logger, stream = log
    try:
        raise ValueError(f"cannot use {KEY}")
    except ValueError:
        logger.exception("it broke")
    assert SECRET not in stream.getvalue()
    assert f"ValueError: cannot use jf_phone_{REDACTED}" in stream.getvalue()


def test_extras_are_redacted() -> None:
    record = logging.makeLogRecord(
        {"msg": "x", "color_message": KEY, "headers": {"token": SECRET}, "status": 200}
    )
    RedactionFilter().filter(record)
    assert SECRET not in str(record.__dict__)
    assert record.__dict__["status"] == 200


def test_known_secrets_are_redacted_everywhere(
    log: Log,
) -> None:
    logger, stream = log
    logger.info("of hunter2-hunter2-long, hunter2-hunter2 and abc")
    assert stream.getvalue() == f"of {REDACTED}, {REDACTED} and abc\n"


def test_arguments_that_do_not_match_their_message_are_redacted(
    log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    # The error report of the logging module shows the message and the arguments.
    record = logging.makeLogRecord({"msg": "one %s " + KEY, "args": (KEY, KEY)})
    log[0].handlers[0].handle(record)
    complaint = capsys.readouterr().err
    assert "Message: 'one %s jf_phone_***'" in complaint
    assert SECRET not in complaint


def test_the_access_log_keeps_its_format(log: Log) -> None:
    logger, stream = log
    form = AccessFormatter('%(client_addr)s - "%(request_line)s" %(status_code)s', use_colors=False)
    logger.handlers[0].setFormatter(form)
    logger.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:5000", "GET", f"/x?token={SECRET}", "1.1", 200)
    assert stream.getvalue() == f'127.0.0.1:5000 - "GET /x?token={REDACTED} HTTP/1.1" 200 OK\n'


def test_every_handler_is_redacted() -> None:
    logger = logging.getLogger("jackfield-test-hide")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        install_redaction(["hunter2-hunter2"], ["jackfield-test-hide"])
        # A filter on the logger would miss records of child loggers; one on the handler does not.
        logging.getLogger("jackfield-test-hide.below").warning("%s hunter2-hunter2", token_protocol(KEY))
    finally:
        logger.removeHandler(handler)
    assert stream.getvalue() == f"jackfield.token.{REDACTED} {REDACTED}\n"
