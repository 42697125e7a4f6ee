"""Runs a .tflite file that somebody else wrote: verified first, and then in a process of its own.

verifier.py finds what is damaged in the file's structure. Kernels of LiteRT may still be led astray by shapes and
options that do not fit together; that ends the worker process, and is an error here. Arrays go through pipes: some
tenths of a millisecond for a picture.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any
from weakref import finalize

from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.missing_operators import REGISTERED, missing_operator
from pocketgraph.litert.tensor_detail import TensorDetail
from pocketgraph.litert.untrusted.messages import receive, send
from pocketgraph.litert.untrusted.verifier import verify_file

START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    " from pocketgraph.litert.untrusted.isolated_worker import serve; serve()"
)
PATIENCE = 10  # seconds for a worker to end once it is killed
MOST_SECONDS = 300.0  # that a file may take to be opened, and each run of it
TAIL = 300  # characters of what native code said last


class IsolatedInterpreter:
    """A .tflite file in LiteRT's interpreter, in a process of its own.

    Attributes:
        inputs: what it takes.
        outputs: what it gives.
        seconds: how long the last run took, without the way to the process and back.
    """

    def __init__(self, path: str, threads: int = 1, most_seconds: float = MOST_SECONDS) -> None:
        """Opens the file.

        Args:
            path: of the file.
            threads: that LiteRT computes with.
            most_seconds: that opening it and each run may take, where the system has timers (all but Windows).

        Raises:
            FormatError: it is damaged, LiteRT does not take it, or takes too long.
            OSError: it cannot be read.
            RunError: no process can be started.
        """
        verify_file(path)
        self._path = path
        self._most_seconds = most_seconds
        self._lock = threading.Lock()
        self.seconds = 0.0
        self._notes = tempfile.TemporaryFile()  # noqa: SIM115  (closed when the process has ended)
        search = json.dumps([os.getcwd() if place == "" else str(place) for place in sys.path])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, search],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._notes,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            self._notes.close()
            raise RunError(f"no process can be started to run this file: {error}", where=path) from error
        self._end = finalize(self, _ended, self._process, self._notes)
        about, _ = self._asked({"path": os.path.abspath(path), "threads": threads, "seconds": most_seconds}, [])
        self.inputs = [TensorDetail.of_interpreter(entry) for entry in about["inputs"]]
        self.outputs = [TensorDetail.of_interpreter(entry) for entry in about["outputs"]]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input.

        Raises:
            FormatError: LiteRT fails on the file, takes too long, or ends its process.
            RunError: the model is closed, perhaps by another thread during the run.
        """
        with self._lock:
            about, results = self._asked({}, list(arrays))
        self.seconds = float(about["seconds"])
        return results

    def close(self) -> None:
        """Ends the process, also one that computes."""
        self._end()

    def _asked(self, request: dict[str, Any], arrays: list[Array]) -> tuple[dict[str, Any], list[Array]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            if not self._end.alive:
                raise EOFError
            send(stdin, request, arrays)
            about, results = receive(stdout)
        except (OSError, EOFError, ValueError):
            raise self._death() if self._end.alive else RunError("the model is closed", where=self._path) from None
        except BaseException:  # an answer that nobody waited for would be taken for the next one's
            self._end()
            raise
        if "error" in about:
            if missing := missing_operator(about["error"]):
                raise FormatError(missing, where=self._path, hint=REGISTERED)
            raise FormatError(f"LiteRT cannot run this file: {about['error']}", where=self._path)
        return about, results

    def _death(self) -> FormatError:
        """Why the process has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        code = self._process.poll()
        text = ""
        with contextlib.suppress(OSError, ValueError):  # another thread may close it
            self._notes.seek(0, os.SEEK_END)
            self._notes.seek(max(0, self._notes.tell() - TAIL))
            text = self._notes.read().decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("INFO:", "W0000"))]
        self._end()
        if os.name == "posix" and code == -signal.SIGALRM:
            return FormatError(
                f"LiteRT takes longer than {self._most_seconds:g} seconds on this file", where=self._path,
                hint="the file is damaged, or made to do harm",
            )  # fmt: skip
        how = "ended without a word"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"ended by {signal.Signals(-code).name}"
        said = f" (it said: {lines[-1]})" if lines else ""
        return FormatError(
            f"LiteRT {how} on this file{said}", where=self._path, hint="the file is damaged, or made to do harm"
        )


def _ended(process: subprocess.Popen[bytes], notes: IO[bytes]) -> None:
    """Ends the worker, first of all: a thread that writes to it or waits for its answer holds the pipes until then."""
    process.kill()
    with contextlib.suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    if process.stdout is not None:
        process.stdout.close()
    notes.close()
