"""What engines tell their makers is not told."""

import os
import pathlib
import subprocess
import sys

import pytest

ENGINE = """
try:
    import openvino_telemetry as sender
except ImportError:
    sender = None
"""
IMPORTED = "from pocketgraph.runtime.part_engines.telemetry import without_telemetry; "


def run(words: str, folder: pathlib.Path, **changed: str) -> str:
    said = ("CI", "ORT_DISABLE_TELEMETRY")  # where none is sent anyway, and what another test may have set
    environment = {name: value for name, value in os.environ.items() if name not in said}
    environment |= {"HOME": str(folder), "TMPDIR": str(folder), **changed}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("before", "told"), [("", "None"), ("import openvino_telemetry; ", "a sender")])
def test_an_engine_that_sends_by_a_package_does_without(before: str, told: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "openvino.py").write_text(ENGINE)
    (tmp_path / "openvino_telemetry.py").write_text("")
    words = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {before}{IMPORTED}"
    words += "found = without_telemetry('openvino').sender; print(found and 'a sender')"
    assert run(words, tmp_path) == told


def test_onnx_runtime_writes_no_identifier_and_forked_processes_end(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime")
    forked = "import os; without_telemetry('onnxruntime'); child = os.fork(); print(child and os.waitpid(child, 0)[1])"
    assert sorted(run(IMPORTED + forked, tmp_path).split()) == ["0", "0"]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("chosen", ["0", "1"])
def test_what_the_user_says_of_telemetry_stays(chosen: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("import os\nsaid = os.environ['ORT_DISABLE_TELEMETRY']\n")
    words = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {IMPORTED}print(without_telemetry('onnxruntime').said)"
    assert run(words, tmp_path, ORT_DISABLE_TELEMETRY=chosen) == chosen


@pytest.mark.parametrize(("engine", "told"), [("onnxruntime", "True 1"), ("openvino", "False None")])
def test_only_what_belongs_to_the_engine_is_set(engine: str, told: str, tmp_path: pathlib.Path) -> None:
    """Others of the process may use ``openvino_telemetry``."""
    (tmp_path / f"{engine}.py").write_text("")
    (tmp_path / "openvino_telemetry.py").write_text("")
    words = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r}); {IMPORTED}without_telemetry({engine!r}); "
    words += "print('openvino_telemetry' not in sys.modules, os.environ.get('ORT_DISABLE_TELEMETRY'))"
    assert run(words, tmp_path) == told
