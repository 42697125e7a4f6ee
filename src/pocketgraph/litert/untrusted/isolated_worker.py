"""The other side of isolated.py: a process that runs one .tflite file for its parent, and may be ended by it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

import numpy as np

from pocketgraph.litert.running import file_interpreter
from pocketgraph.litert.untrusted.messages import receive, send

ROOM = 4 << 30  # bytes of addresses that a process has in any case


def serve() -> None:
    """Answers the parent on the pipes that stdin and stdout are, until it has gone."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code may print, but not into the answers
    _limit()
    try:
        about, _ = receive(requests)
        most_seconds = float(about["seconds"])
        _end_after(most_seconds)
        try:
            interpreter = file_interpreter.opened(about["threads"], **file_interpreter.source_of(about["path"]))
            details = [interpreter.get_input_details(), interpreter.get_output_details()]
        except (RuntimeError, ValueError, MemoryError, OSError) as error:
            send(answers, {"error": _said(error)})
            return
        inputs, outputs = ([_described(detail) for detail in side] for side in details)
        send(answers, {"inputs": inputs, "outputs": outputs})
        while True:
            _end_after(0)
            _, arrays = receive(requests)
            _end_after(most_seconds)
            try:
                seconds = run_timed(interpreter, details[0], arrays)
                results = [np.asarray(interpreter.get_tensor(detail["index"])) for detail in details[1]]
            except (RuntimeError, ValueError, MemoryError) as error:
                send(answers, {"error": _said(error)})
            else:
                send(answers, {"seconds": seconds}, results)
    except (EOFError, OSError, KeyboardInterrupt):
        return


def run_timed(interpreter: Any, details: list[dict[str, Any]], arrays: list[Any]) -> float:
    """Sets the inputs, of which ``details`` tell, and computes; the seconds that it took.

    Raises:
        RuntimeError, ValueError: LiteRT fails, or does not take arrays of these sizes.
    """
    _resize(interpreter, details, arrays)
    begun = time.perf_counter()
    for detail, array in zip(details, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return time.perf_counter() - begun


def _resize(interpreter: Any, details: list[dict[str, Any]], arrays: list[Any]) -> None:
    """Gives inputs the sizes of what is fed where the file leaves them open; ``details`` follow."""
    other = [
        (detail, array) for detail, array in zip(details, arrays, strict=True)
        if tuple(detail["shape"]) != array.shape
    ]  # fmt: skip
    for detail, array in other:
        if -1 not in detail["shape_signature"]:
            continue  # what sets the tensor says that it does not fit
        interpreter.resize_tensor_input(detail["index"], array.shape, strict=True)
        detail["shape"] = np.array(array.shape, np.int32)
    if other:
        interpreter.allocate_tensors()


def _described(detail: dict[str, Any]) -> dict[str, Any]:
    scale, zero = detail["quantization"]
    return {
        "name": str(detail["name"]),
        "shape": [int(size) for size in detail["shape"]],
        "dtype": np.dtype(detail["dtype"]).str,
        "quantization": [float(scale), int(zero)],
        "shape_signature": [int(size) for size in detail["shape_signature"]],
    }


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _end_after(seconds: float) -> None:
    """Has the system end this process by SIGALRM after so many seconds, whatever native code does; 0 for never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit() -> None:
    """No core files, and no more memory than the machine has: a small file may ask for any amount."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        room = max(ROOM, machine)
        resource.setrlimit(resource.RLIMIT_AS, (room if most < 0 else min(room, most), most))
