"""`streamlib gateway --workers N`: several processes that accept from one port.

The parent has no event loop and serves nothing: it passes signals on to its workers, and restarts a
worker that died. Its socket stays open until the gateway stops, so a connection waits for another
worker; after that it is refused.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

PASSED_ON: Final = ("SIGHUP", "SIGINT", "SIGTERM")
"""Signals that the parent passes on to all workers."""

STEADY_SECONDS: Final = 5.0
"""Seconds after which the death of a worker is not a failed start."""

FAILED_STARTS: Final = 5
"""Failed starts in a row after which the gateway stops."""

RESTART_SECONDS: Final = 0.5
"""Seconds before a worker is started again."""

SPARE_SECONDS: Final = 10.0
"""Seconds beyond the grace period after which workers that still run are killed."""


class GatewayWorkers:
    """The worker processes of one gateway."""

    def __init__(
        self,
        count: int,
        serve: Callable[[int], int],
        grace: float,
        bury: Callable[[int], object] = lambda process: None,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepares the workers.

        Args:
            count: number of workers.
            serve: what a worker does, with its number from 0 on; returns its exit code.
            grace: seconds for open streams to finish.
            bury: called with the id of each process that has ended.
            close: closes this process's copy of the port, once the gateway stops: while one is
                open, connections are accepted that no worker serves.
        """
        self._bury = bury
        self._close = close
        self._count = count
        self._serve = serve
        self._grace = grace
        self._numbers: dict[int, int] = {}
        """Process id -> number of the worker, for those that run."""
        self._started: dict[int, float] = {}
        """Process id -> start of the worker, in seconds of the monotonic clock."""
        self._failed_starts = 0
        """GatewayWorkers in a row that died soon after their start."""
        self._exit_code: int | None = None
        """Exit code of the gateway; None before it stops."""

    def run(self) -> int:
        """Serves until a signal ends all workers; returns the exit code."""
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), self._pass_on)
        signal.signal(signal.SIGALRM, self._kill)
        for number in range(self._count):
            self._start(number)
        while self._numbers:
            process, status = os.wait()
            if process in self._numbers:
                self._bury(process)
                self._ended(self._numbers.pop(process), process, status)
        return self._exit_code or 0

    def _start(self, number: int) -> None:
        if self._exit_code is not None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            self._become_worker(number)
        self._numbers[process] = number
        self._started[process] = time.monotonic()
        if self._exit_code is not None:
            # The gateway was stopped while this worker was started.
            os.kill(process, signal.SIGTERM)

    def _become_worker(self, number: int) -> None:
        """Runs the worker in the forked process. Never returns."""
        code = 1
        try:
            for other in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                signal.signal(other, signal.SIG_DFL)
            # Ignored until the server has its own handler: the routes were just read.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            # Own process group: else the terminal sends Ctrl-C here too, and it would count twice.
            os.setpgid(0, 0)
            code = self._serve(number)
        except BaseException:  # noqa: BLE001 - nothing of the parent may run in a worker
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _ended(self, number: int, process: int, status: int) -> None:
        lifetime = time.monotonic() - self._started.pop(process)
        if self._exit_code is not None:
            return
        code = os.waitstatus_to_exitcode(status)
        print(f"worker {number} ended with {code}: another is started", file=sys.stderr, flush=True)
        self._failed_starts += 1
        if lifetime >= STEADY_SECONDS:
            self._failed_starts = 0
        if self._failed_starts >= FAILED_STARTS:
            print("the workers do not start: the gateway stops", file=sys.stderr, flush=True)
            self._stop(signal.SIGTERM, 1)
            return
        time.sleep(RESTART_SECONDS)
        if self._exit_code is None:
            self._start(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._send(number)
        else:
            self._stop(number, 130 if number == signal.SIGINT else 0)

    def _stop(self, number: int, code: int) -> None:
        self._exit_code = code
        self._close()
        self._send(number)
        signal.alarm(round(self._grace + SPARE_SECONDS))

    def _kill(self, number: int, frame: FrameType | None) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for process in list(self._numbers):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(process, number)
