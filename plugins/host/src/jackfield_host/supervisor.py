"""The parent of several worker processes that serve one port: starts, watches, restarts and stops them.

Each worker listens on its own socket with SO_REUSEPORT, and the kernel spreads connections over them. If all
workers shared one socket, a single worker would accept every connection of a burst. A worker that dies or has
not started yet gets no connections.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any

from jackfield.settings import SettingsError

from jackfield_host.notifications import StatusNotifier, SystemdNotifier
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import CLOSE_SECONDS, EXIT_SECONDS, FORCED_EXIT_SECONDS, bind_socket
from jackfield_host.worker import DRAIN, READY, STOP, ParentConnection, Worker

_log = logging.getLogger(__name__)

STABLE_SECONDS = 10.0
"""A worker that served this long is restarted without a delay."""

FIRST_DELAY, MAX_DELAY = 0.5, 30.0
"""The delays before a worker that died early is restarted: each is twice the one before."""

SPARE_SECONDS = 2.0
"""How long after a worker's own deadline the parent kills it if it has not stopped."""

MAX_MESSAGE = 1_000_000
"""The maximum size of a worker's message."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


class _WorkerProcess:
    """A running worker, as its parent sees it."""

    def __init__(self, number: int, process: BaseProcess, connection: socket.socket, now: float) -> None:
        self.number = number
        self.process = process
        self.connection = connection
        self.started_at = now
        self.heard_at = now
        self.is_ready = False
        self._received = b""

    def tell(self, word: str) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(f"{word}\n".encode(), socket.MSG_DONTWAIT)

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Return what the worker has sent; nothing if it is gone."""
        with contextlib.suppress(OSError):
            self._received += self.connection.recv(MAX_MESSAGE, socket.MSG_DONTWAIT)
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            word, content = json.loads(line)
            yield word, content

    def end(self) -> None:
        self.process.join()
        self.process.close()
        self.connection.close()


def _reserve_port(options: HostSettings) -> socket.socket:
    """Return a socket that is bound to the port of the workers but does not listen."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise SettingsError(f"[host] workers: not available on {sys.platform}; use one worker (--workers 1)")
    # Without SO_REUSEPORT at first: otherwise two hosts of the same user would share the port unnoticed.
    with bind_socket(options) as exclusive:
        port: int = exclusive.getsockname()[1]
    return bind_socket(replace(options, port=port), shared=True)


class Supervisor:
    """Runs the workers of one host until a signal stops them."""

    def __init__(
        self,
        options: HostSettings,
        run_worker: Callable[[Worker], int],
        on_ready: Callable[[dict[str, Any]], None],
        notifier: StatusNotifier | None = None,
    ) -> None:
        """`run_worker` serves in a new process; `on_ready` gets the summary once all workers are serving."""
        self._options = options
        self._run_worker = run_worker
        self._on_ready = on_ready
        self._notifier = notifier or SystemdNotifier()
        self._reservation = _reserve_port(options)
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, _WorkerProcess] = {}
        self._restarts: dict[int, float] = {}
        """When to restart the workers that died."""
        self._early_deaths: Counter[int] = Counter()
        self._is_serving = False
        """True if all workers have been ready."""
        self._summary: dict[str, Any] = {}
        self._kill_at: float | None = None
        """When workers that should have stopped are killed; None while the host is not stopping."""
        self._status = 0

    def run(self) -> int:
        """Serve; return the exit status of the process."""
        # What exists now is shared with the workers; a collection that touched it would copy it.
        gc.collect()
        gc.freeze()
        with self._wakeups() as wakeups:
            # Start the first worker alone: it creates what is missing, and a fault is reported only once.
            self._start(1)
            while self._workers or self._restarts:
                for key, _ in self._selector.select(self._timeout()):
                    if key.fileobj is wakeups:
                        self._handle_signals(wakeups.recv(4096))
                    else:
                        self._hear(key.data)
                self._reap()
                self._check_time()
        return self._status

    @contextlib.contextmanager
    def _wakeups(self) -> Iterator[socket.socket]:
        """Return a socket that receives the number of every signal."""
        wakeups, sender = socket.socketpair()
        wakeups.setblocking(False)
        sender.setblocking(False)
        self._selector.register(wakeups, selectors.EVENT_READ)
        before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield wakeups
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            for each in (wakeups, sender, self._reservation):
                each.close()

    # Workers.

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        # Forked from a parent with one thread: a worker shares its memory and starts without imports.
        process = multiprocessing.get_context("fork").Process(
            target=self._work, args=(number, theirs), name=f"jackfield worker {number}", daemon=False
        )
        worker = _WorkerProcess(number, process, ours, time.monotonic())
        self._workers[number] = worker
        process.start()
        theirs.close()
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _work(self, number: int, connection: socket.socket) -> None:
        """Run in the new process: release everything inherited from the parent, and serve."""
        signal.set_wakeup_fd(-1)
        for each in _SIGNALS:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
        self._selector.close()
        port = self._reservation.getsockname()[1]
        self._reservation.close()
        # Otherwise the workers would keep each other's connections open when the parent is gone.
        for other in self._workers.values():
            other.connection.close()
        parent = ParentConnection(connection, number, self._notifier.watchdog_seconds)
        try:
            status = self._run_worker(Worker(port, parent))
        except KeyboardInterrupt:
            status = 128 + signal.SIGINT
        sys.exit(status)

    def _hear(self, worker: _WorkerProcess) -> None:
        if worker.process.exitcode is not None:
            # `_reap` handles it; nobody reads its connection any more.
            return
        for word, content in worker.messages():
            worker.heard_at = time.monotonic()
            if word == READY:
                worker.is_ready = True
                self._summary = self._summary or content
                self._advance(worker)

    def _advance(self, worker: _WorkerProcess) -> None:
        """Continue the startup after a worker has become ready."""
        _log.info("worker %d is serving (process %d)", worker.number, worker.process.pid)
        if self._is_serving:
            return
        if self._kill_at is None and len(self._workers) < self._options.workers:
            for number in range(len(self._workers) + 1, self._options.workers + 1):
                self._start(number)
        elif all(each.is_ready for each in self._workers.values()):
            self._is_serving = True
            self._on_ready(self._summary)
            address, port = self._reservation.getsockname()[:2]
            self._notifier.ready(f"listening on {address}:{port} with {self._options.workers} workers")

    def _reap(self) -> None:
        for worker in list(self._workers.values()):
            status = worker.process.exitcode
            if status is not None:
                del self._workers[worker.number]
                self._selector.unregister(worker.connection)
                worker.end()
                self._handle_end(worker, status)

    def _handle_end(self, worker: _WorkerProcess, status: int) -> None:
        if self._kill_at is not None:
            self._status = self._status or int(status != 0)
            return
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        if not self._summary and status > 0:
            # The first worker has said why it cannot start.
            self._give_up("")
        elif not worker.is_ready and not any(each.is_ready for each in self._workers.values()):
            self._give_up(f"worker {worker.number} {how} before it was ready, and no other worker is serving")
        elif not self._is_serving:
            self._give_up(
                f"worker {worker.number} {how} before all {self._options.workers} workers were serving"
            )
        else:
            delay = self._delay(worker)
            later = f"in {delay:g} s" if delay else "now"
            _log.warning("worker %d %s; restarting it %s", worker.number, how, later)
            self._restarts[worker.number] = time.monotonic() + delay

    def _delay(self, worker: _WorkerProcess) -> float:
        """Return how long to wait before a worker is restarted."""
        if worker.is_ready and time.monotonic() - worker.started_at >= STABLE_SECONDS:
            self._early_deaths[worker.number] = 0
            return 0.0
        self._early_deaths[worker.number] += 1
        delay: float = FIRST_DELAY * 2 ** (self._early_deaths[worker.number] - 1)
        return min(delay, MAX_DELAY)

    def _give_up(self, reason: str) -> None:
        if reason:
            _log.error("%s; stopping the host", reason)
        self._status = 1
        self._stop()

    # Signals and time.

    def _handle_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                continue
            if self._kill_at is None:
                _log.info("draining %d workers", len(self._workers))
                self._stop()
            else:
                _log.warning("second signal: stopping now")
                self._status = 128 + number
                self._stop(at_once=True)

    def _stop(self, *, at_once: bool = False) -> None:
        seconds = FORCED_EXIT_SECONDS
        if not at_once:
            seconds = self._options.drain_seconds + CLOSE_SECONDS + EXIT_SECONDS
            self._notifier.stopping(seconds)
        self._kill_at = time.monotonic() + seconds + SPARE_SECONDS
        self._restarts.clear()
        for worker in self._workers.values():
            worker.tell(STOP if at_once else DRAIN)

    def _timeout(self) -> float | None:
        """Return the seconds until the next scheduled action is due, even if no event arrives."""
        due = list(self._restarts.values())
        now = time.monotonic()
        if self._kill_at is not None:
            due.append(self._kill_at)
        if self._notifier.watchdog_seconds:
            due.append(now + self._notifier.watchdog_seconds / 4)
        return max(0.0, min(due) - now) if due else None

    def _check_time(self) -> None:
        now = time.monotonic()
        for number, at in list(self._restarts.items()):
            if at <= now:
                del self._restarts[number]
                self._start(number)
        if self._kill_at is not None and self._kill_at <= now:
            self._kill(list(self._workers.values()), "did not stop in time")
        if self._notifier.watchdog_seconds:
            self._notifier.alive()
            limit = now - self._notifier.watchdog_seconds
            hung = [each for each in self._workers.values() if each.is_ready and each.heard_at < limit]
            self._kill(hung, f"was silent for {self._notifier.watchdog_seconds:g} s")

    def _kill(self, workers: list[_WorkerProcess], reason: str) -> None:
        for worker in workers:
            _log.error("worker %d %s; killing it", worker.number, reason)
            if worker.process.pid is not None:
                os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.join()
