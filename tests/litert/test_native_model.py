"""Packed models in LiteRT's C library, beside its Python package."""

import gc
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

from litert.parts import compiled_part
from pocketgraph.errors import RunError
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import host
from pocketgraph.litert.native import c_library, native_model
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.running import packed_runner, runner
from pocketgraph.litert.running.packed_runner import PackedRunner
from pocketgraph.litert.running.runner import PlainRunner

NET = """
    x = Placeholder(dtype=float, shape=[4,64])
    w = Const(float[64,32] 0.01)
    y = MatMul(x, w, T=float)
    s = Softmax(y, T=float)
    t = Tanh(y, T=float)
"""
X = np.linspace(-2, 2, 256, dtype=np.float32).reshape(4, 64)
OUTPUTS = [((4, 32), np.dtype(np.float32))] * 2
known = pytest.mark.skipif(not host.engine_version().startswith(c_library.KNOWN), reason="another version of LiteRT")


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    graph = parse(NET)
    specs = {"x:0": (FLOAT, X.shape)}
    compiled_part(graph, list(graph), ["x:0"], ["s:0", "t:0"], specs, cache_dir=tmp_path, key="k").close()
    (found,) = tmp_path.glob("*.tflite")
    return str(found)


@known
@pytest.mark.skipif(not host.runs_gpu_library(), reason="LiteRT's Python package compiles no models here")
@pytest.mark.parametrize("name", ["packed.xnn", 'a "quoted" \\ näme.xnn'])
def test_both_give_the_same_and_know_each_others_files(
    model: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = PlainRunner(model, 1)
    right = plain.run([X])
    plain.close()
    packed = str(tmp_path / name)
    stamps = []
    for version in (c_library.KNOWN, ("0.0.",), c_library.KNOWN):
        monkeypatch.setattr(c_library, "KNOWN", version)
        opened = PackedRunner(model, packed, 1, OUTPUTS)
        assert isinstance(opened._model, native_model.NativeModel) is (version != ("0.0.",))
        for _ in range(2):
            for given, wanted in zip(opened.run([X]), right, strict=True):
                np.testing.assert_array_equal(given, wanted)
        stamps.append(os.stat(packed).st_mtime_ns)
        opened.close()
    assert stamps == stamps[:1] * 3


@known
def test_results_stay_as_they_are(model: str, tmp_path: pathlib.Path) -> None:
    opened = PackedRunner(model, str(tmp_path / "p.xnn"), 1, OUTPUTS)
    (first, _), kept = opened.run([X]), opened.run([X])[0]
    opened.run([np.zeros_like(X)])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(opened.direct([1])([None, X[:, ::1]])[0], first)  # type: ignore[list-item]
    opened.close()
    with pytest.raises(RunError, match="closed"):
        opened.run([X])


@known
def test_what_is_no_model_is_refused(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.tflite"
    path.write_bytes(b"TFL3" * 100)
    with pytest.raises(RunError, match="LiteRT does not take"):
        PackedRunner(str(path), str(tmp_path / "p.xnn"), 1, OUTPUTS)
    assert capfd.readouterr() == ("", "")


@known
def test_a_model_of_other_sizes_is_refused(model: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(RunError, match="bytes"):
        PackedRunner(model, str(tmp_path / "p.xnn"), 1, [((4, 31), np.dtype(np.float32))] * 2)
    opened = PackedRunner(model, str(tmp_path / "p.xnn"), 1, OUTPUTS)
    with pytest.raises(RuntimeError, match="bytes"):
        opened.run([X[:2]])
    opened.close()


@known
def test_whoever_closes_waits_for_runs(model: str, tmp_path: pathlib.Path) -> None:
    opened = PackedRunner(model, str(tmp_path / "p.xnn"), 1, OUTPUTS)
    began, said = threading.Event(), []

    def work() -> None:
        try:
            while True:
                opened.run([X])
                began.set()
        except (RunError, RuntimeError) as error:
            said.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    began.wait(30)
    opened.close()
    for thread in threads:
        thread.join(30)
    assert len(said) == 3


@known
def test_a_process_may_leave_models_open(model: str, tmp_path: pathlib.Path) -> None:
    script = f"""
import contextlib
import threading
import numpy as np
from pocketgraph.errors import RunError
from pocketgraph.litert.running.packed_runner import PackedRunner
opened = PackedRunner({model!r}, {str(tmp_path / "p.xnn")!r}, 2, [((4, 32), np.dtype("f4"))] * 2)
x = np.ones((4, 64), "f4")
def work():
    with contextlib.suppress(RunError, RuntimeError):  # said while Python ends, an exception would end it with an error
        while True:
            opened.run([x])
threading.Thread(target=work, daemon=True).start()
opened.run([x])
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        assert (ended.returncode, ended.stdout) == (0, "")
        assert "Fatal" not in ended.stderr


@known
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="tells which libraries a process has")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_processor_that_cannot_run_the_gpu_library_never_loads_it(
    model: str, tmp_path: pathlib.Path, is_known: bool
) -> None:
    script = f"""
from pocketgraph.errors import RunError
from pocketgraph.litert import host
from pocketgraph.litert.native import c_library
from pocketgraph.litert.running.packed_runner import PackedRunner
from pocketgraph.litert.running.runner import PlainRunner, prepare
import numpy as np
host.runs_gpu_library = lambda: False
c_library.KNOWN = {c_library.KNOWN if is_known else ()!r}
x = np.ones((4, 64), "f4")
prepare()
try:
    packed = PackedRunner({model!r}, {str(tmp_path / "p.xnn")!r}, 1, [((4, 32), np.dtype("f4"))] * 2)
    print(packed.run([x])[0].shape)
except RunError as error:
    print(error.what)
PlainRunner({model!r}, 1).run([x])
print("Accelerator.so" in open("/proc/self/maps").read())
"""
    around = os.environ | {"LD_LIBRARY_PATH": host.engine_folder()}  # where it is found by its name alone
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, env=around)
    said, loaded = ended.stdout.splitlines()
    assert said == "(4, 32)" if is_known else "lacks instructions" in said
    assert loaded == "False"


def test_without_compiled_models_a_part_is_computed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,1024])\nw = Const(float[1024,512] 0.01)\ny = MatMul(x, w, T=float)"
    )
    x = np.linspace(-1, 2, 1024, dtype=np.float32)[None]
    monkeypatch.setattr(c_library, "KNOWN", ())
    monkeypatch.setattr(host, "runs_gpu_library", lambda: False)
    monkeypatch.setattr(packed_runner, "_PackageModel", None)  # nobody may ask for one
    specs = {"x:0": (FLOAT, x.shape)}
    for _ in range(2):
        made = compiled_part(graph, list(graph), ["x:0"], ["y:0"], specs, cache_dir=tmp_path, key="k")
        np.testing.assert_allclose(made.run([x])[0], np.full((1, 512), x.sum() * np.float32(0.01)), rtol=1e-5)
        made.close()


RASPBERRY_PI = {"4": 0x887, "5": 0x119FFF}  # AT_HWCAP; the first has none of the instructions of cryptography


@pytest.mark.parametrize(
    ("system", "machine", "hwcaps", "runs"),
    [
        ("linux", "aarch64", RASPBERRY_PI["4"], False),
        ("linux", "aarch64", RASPBERRY_PI["5"], True),
        ("linux", "aarch64", 0, False),
        ("darwin", "arm64", 0, True),
        ("linux", "x86_64", 0, True),
    ],
)
def test_which_processors_run_the_gpu_library(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, hwcaps: int, runs: bool
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(host, "_hwcaps", lambda: hwcaps)
    assert host.runs_gpu_library() is runs


@known
def test_models_that_nobody_holds_are_given_back(model: str, tmp_path: pathlib.Path) -> None:
    gc.collect()  # what earlier tests let go of
    before = len(runner._live)
    opened = PackedRunner(model, str(tmp_path / "p.xnn"), 1, OUTPUTS)
    assert len(runner._live) == before + 1
    del opened
    gc.collect()
    assert len(runner._live) == before


def test_what_others_write_meanwhile_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    inside, told = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(60)
        os.write(2, b"a line of somebody else\n")
        told.set()
        done.wait(60)

    done = threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    with quiet(), quiet():
        os.write(2, b"INFO: Created a delegate\nWARNING: [npu_registry.cc:34] none\n")
        inside.set()
        told.wait(60)
    done.set()
    thread.join()
    assert capfd.readouterr().err == "a line of somebody else\n"
