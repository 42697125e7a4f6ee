"""The newest frame of a stream that comes faster than it can be used: older ones are dropped, never queued."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from pocketgraph.apps.live.answers import Frame, Sound


class Newest:
    """Reads a stream in a thread of its own.

    Sounds are kept, all of them, as words are lost with them; of frames only the last one is.

    Args:
        frames: the stream.
    """

    def __init__(self, frames: Iterator[Frame | Sound]) -> None:
        self._frames = frames
        self._changed = threading.Condition()
        self._waiting: list[Frame | Sound] = []
        self._ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="pocketgraph-frames", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for given in self._frames:
                with self._changed:
                    if self._ended:
                        break
                    if isinstance(given, Frame) and self._waiting:
                        self._waiting.clear()
                    self._waiting.append(given)
                    self._changed.notify_all()
        except BaseException as error:  # given to whoever waits
            self._error = error
        finally:
            close = getattr(self._frames, "close", None)
            if close is not None:
                close()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def __iter__(self) -> Iterator[Frame | Sound]:
        """What is newest, each time.

        Raises:
            PocketgraphError: what reading raised.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if self._waiting:
                    given = self._waiting.pop(0)
                elif self._error is not None:
                    raise self._error
                else:
                    return
            yield given

    def close(self) -> None:
        """Stops reading after the frame at hand."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()
