"""A .tflite file of a stranger runs in a process of its own; what ends that process is an error here."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import threading
import time

import numpy as np
import pytest

from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph import DType
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.untrusted.isolated import IsolatedInterpreter
from pocketgraph.litert.writing import writer
from pocketgraph.quantization.evaluation.runnable_models import open_model

INT32 = DType.named("int32")


@pytest.fixture
def remainder(tmp_path: pathlib.Path) -> str:
    """A file that takes two int32[3] and gives the remainders, by LiteRT's kernel as it is."""
    x, y, z = (Value(name, INT32, (3,)) for name in "xyz")
    program = Program([x, y], [z], [Operation("FLOOR_MOD", [x, y], [z])])
    path = tmp_path / "remainder.tflite"
    path.write_bytes(b"".join(bytes(piece) for piece in writer.pieces(program)))
    return str(path)


def test_results_come_back(remainder: str) -> None:
    model = open_model(remainder)
    assert [(each.name, each.shape, each.dtype) for each in model.inputs] == [
        ("x", (3,), np.dtype("int32")),
        ("y", (3,), np.dtype("int32")),
    ]
    for divisor, expected in ((4, [3, 0, 1]), (-4, [-1, 0, -3])):
        (found,) = model.run([np.array([7, 8, -3], np.int32), np.full(3, divisor, np.int32)])
        assert found.tolist() == expected
        assert found.dtype == np.int32


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode there")
def test_a_path_need_not_be_utf8(remainder: str, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / os.fsdecode(b"mod\xe8le.tflite"))
    shutil.copy(remainder, path)
    inputs = [np.array([7, 8, -3], np.int32), np.full(3, 4, np.int32)]
    isolated = IsolatedInterpreter(path)
    assert isolated.run(inputs)[0].tolist() == [3, 0, 1]
    isolated.close()
    assert ModelFile(path).run("serving_default", dict(zip("xy", inputs, strict=True)))["z"].tolist() == [3, 0, 1]
    assert PlainRunner(path, 1).run(inputs)[0].tolist() == [3, 0, 1]


def test_a_signal_in_native_code_is_an_error(remainder: str) -> None:
    model = open_model(remainder)
    lowest = np.full(3, -(2**31), np.int32)
    with pytest.raises(FormatError, match=r"remainder\.tflite: LiteRT ended by SIG[A-Z]+ on this file"):
        model.run([lowest, np.full(3, -1, np.int32)])
    with pytest.raises(RunError, match="closed"):
        model.run([lowest, np.full(3, 2, np.int32)])


def test_what_litert_refuses_is_an_error_and_no_end(remainder: str) -> None:
    interpreter = IsolatedInterpreter(remainder)
    with pytest.raises(FormatError, match="Division by 0"):
        interpreter.run([np.ones(3, np.int32), np.zeros(3, np.int32)])
    with pytest.raises(FormatError, match="LiteRT cannot run this file"):
        interpreter.run([np.ones(4, np.int32), np.ones(3, np.int32)])
    assert interpreter.run([np.full(3, 5, np.int32), np.full(3, 3, np.int32)])[0].tolist() == [2, 2, 2]
    interpreter.close()
    with pytest.raises(RunError, match="closed"):
        interpreter.run([np.ones(3, np.int32), np.ones(3, np.int32)])


def test_a_damaged_file_starts_no_process(remainder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pathlib.Path(remainder)
    path.write_bytes(path.read_bytes()[:200])
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(FormatError, match="damaged"):
        open_model(remainder)


def test_a_file_that_is_gone_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="gone"):
        IsolatedInterpreter(str(tmp_path / "gone.tflite"))


def test_a_file_that_takes_too_long_is_an_error(remainder: str) -> None:
    with pytest.raises(FormatError, match=r"remainder\.tflite: LiteRT takes longer than 1e-06 seconds on this file"):
        IsolatedInterpreter(remainder, most_seconds=1e-6)


def test_closing_while_it_runs_is_one_error(remainder: str) -> None:
    for round_ in range(6):
        interpreter = IsolatedInterpreter(remainder)
        found: list[str] = []

        def run(interpreter: IsolatedInterpreter = interpreter, found: list[str] = found) -> None:
            try:
                while True:
                    interpreter.run([np.ones(3, np.int32), np.ones(3, np.int32)])
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.003 * round_)
        interpreter.close()
        for thread in threads:
            thread.join()
        assert found == [f"RunError: {remainder}: the model is closed"] * 2
