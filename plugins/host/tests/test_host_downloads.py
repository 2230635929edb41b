"""Downloads run one at a time, whatever a plugin's code does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from jackfield.components import ProviderDownload
from jackfield.offers import Download, DownloadError
from jackfield_host.endpoints import downloads
from jackfield_host.endpoints.downloads import DownloadBusyError, Downloads

Progress = Callable[[int], None]
PATIENCE = 30.0


class Sample:
    """A download in four steps, which a test releases."""

    def __init__(self, name: str = "sample", error: Exception | None = None, *, heeds: bool = True) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.error = error
        self.done = False
        self._heeds = heeds
        self.download = Download(name, f"the {name}", 400, self._run, lambda: self.done)

    def _run(self, progress: Progress) -> None:
        try:
            progress(100)
            self.begun.set()
            while not self.gate.wait(0.01):
                if self._heeds:
                    progress(0)
            if self.error is not None:
                raise self.error
            progress(300)
            self.done = True
        finally:
            self.ended.set()


@contextmanager
def held(*samples: Sample) -> Iterator[Downloads]:
    """Return the downloads of a host whose provider is `here`."""
    made = Downloads([ProviderDownload("here", "get it", each.download) for each in samples], "here")
    try:
        yield made
    finally:
        for each in samples:
            each.gate.set()
        asyncio.run(made.close())


def finish(made: Downloads, sample: Sample) -> None:
    sample.gate.set()
    assert made._thread
    made._thread.join(PATIENCE)
    assert not made._thread.is_alive()


def test_two_downloads_do_not_run_at_once() -> None:
    one, two = Sample("one"), Sample("two")
    with held(one, two) as made:
        assert made.state(one.download) == "available"
        made.start(one.download)
        assert one.begun.wait(PATIENCE)
        assert (made.state(one.download), made.attempt(one.download).received) == ("running", 100)
        made.start(one.download)
        with pytest.raises(DownloadBusyError):
            made.start(two.download)
        finish(made, one)
        assert (made.state(one.download), made.attempt(one.download).received) == ("complete", 400)
        made.start(two.download)
        assert two.begun.wait(PATIENCE)
        finish(made, two)
        assert made.state(two.download) == "complete"


def test_a_failed_download_reports_its_error_and_can_be_retried() -> None:
    sample = Sample(error=DownloadError("the disk is full; free some room"))
    with held(sample) as made:
        made.start(sample.download)
        finish(made, sample)
        assert made.state(sample.download) == "failed"
        assert made.attempt(sample.download).error == "the disk is full; free some room"
        sample.error = None
        made.start(sample.download)
        finish(made, sample)
        assert made.state(sample.download) == "complete"
        assert made.attempt(sample.download).error == ""


def test_an_exception_in_a_plugin_fails_the_download_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = Sample(error=ZeroDivisionError("secret detail"))
    with held(sample) as made:
        made.start(sample.download)
        finish(made, sample)
        assert made.attempt(sample.download).error == "unexpected ZeroDivisionError; see the host's log"
    assert "secret detail" in caplog.text


def test_a_download_completed_by_another_program_is_complete() -> None:
    sample = Sample()
    with held(sample) as made:
        sample.done = True
        assert made.state(sample.download) == "complete"
        made.start(sample.download)
        assert not sample.begun.is_set()


def test_a_stopping_host_stops_the_download_and_starts_no_other() -> None:
    sample = Sample()
    with held(sample) as made:
        made.start(sample.download)
        assert sample.begun.wait(PATIENCE)
        asyncio.run(made.close())
        assert sample.ended.is_set()
        assert made.state(sample.download) == "available"
        sample.ended.clear()
        made.start(sample.download)
        assert made.state(sample.download) == "available"


def test_a_download_that_does_not_stop_does_not_keep_the_host_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "STOP_SECONDS", 0.05)
    sample = Sample(heeds=False)
    with held(sample) as made:
        made.start(sample.download)
        assert sample.begun.wait(PATIENCE)
        asyncio.run(made.close())
        assert not sample.ended.is_set()
        assert made._thread
        assert made._thread.daemon


def test_a_download_for_another_provider_needs_a_restart() -> None:
    sample = Sample()
    there = Downloads([ProviderDownload("there", "get it", sample.download)], "here")
    with held(sample) as here:
        assert not here.needs_restart(sample.download)
    assert there.needs_restart(sample.download)
