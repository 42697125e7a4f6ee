"""Ctrl-C, SIGTERM and SIGHUP end a command in one way, within seconds, also while native code computes."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import time
from types import FrameType

from pocketgraph.part_files import remove_own

PATIENCE = 1.0  # seconds in which Python handles a signal, unless it waits for native code
SAME_PRESS = 0.2  # seconds in which further Ctrl-C are the same: a terminal and what started a command both send it
MOST = 30.0  # seconds to keep what was found and to clean up


class Ended(KeyboardInterrupt):
    """The system, or somebody, asks the process to end; what handles Ctrl-C handles it.

    Attributes:
        number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def stopped_by(number: int) -> str:
    """What is said of an end by a signal."""
    return "stopped" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"


def ends_when_asked() -> None:
    """Has Ctrl-C, SIGTERM and SIGHUP raise ``Ended``, where nobody has them ignored, such as nohup.

    Python does so between two of its instructions. A thread ends the process where native code keeps it from that,
    where a further signal comes, or where the end takes too long, as where the exception was lost: Python drops those
    of callbacks that native code makes. More signals in the same second are the same wish, as timeout sends two; but
    whoever presses Ctrl-C twice means it.
    """
    asked: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) == 1:
            raise Ended(number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # takes the number of a signal as soon as it comes
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))  # the pipe is the parent's

    def watch() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the main thread's
        number = 0
        while not number or signal.getsignal(number) is not end:  # a server has them for itself
            number = os.read(reader, 1)[0]
        same = SAME_PRESS if number == signal.SIGINT else PATIENCE
        time.sleep(same)
        os.set_blocking(reader, False)
        with contextlib.suppress(BlockingIOError):
            os.read(reader, 4096)
        import select

        try:
            if not select.select([reader], [], [], PATIENCE - same)[0] and asked:
                select.select([reader], [], [], MOST)
            remove_own()
            if select.select([], [2], [], 0)[1]:  # nobody may read it
                os.write(2, f"\nerror: {stopped_by(number)}\n".encode())
        finally:
            os._exit(128 + number)

    _thread.start_new_thread(watch, ())
