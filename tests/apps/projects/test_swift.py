"""The Swift of iOS projects: compiled and run where there is a compiler, beside stand-ins of Apple's frameworks."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from pocketgraph.apps.projects import make_project
from pocketgraph.exporting import export
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

STUBS = pathlib.Path(__file__).parents[1] / "ios_stubs"
MODULES = (
    "CoreGraphics",
    "CoreVideo",
    "UIKit",
    "SwiftUI",
    "PhotosUI",
    "CoreImage",
    "AVFoundation",
    "CoreML",
    "TensorFlowLite",
)
MODES = ("5", "6")
CLASSIFIER = """
    pixels = Placeholder(dtype=float, shape=[1, 8, 8, CHANNELS])
    w = Const(float WEIGHTS)
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""
COLOURS = CLASSIFIER.replace("CHANNELS", "3").replace(
    "WEIGHTS", "[[[[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]]]]"
)
GRAY = CLASSIFIER.replace("CHANNELS", "1").replace("WEIGHTS", "[[[[0.5, -3.0, 2.0]]]]")
SHARE = """
    pixels = Placeholder(dtype=float, shape=[1, 8, 8, 3])
    axes = Const(int32 [1, 2, 3])
    pooled = Mean(pixels, axes, T=float, Tidx=int32, keep_dims=false)
    size = Const(int32 [1, 1])
    one = Reshape(pooled, size, T=float, Tshape=int32)
    share = Sigmoid(one, T=float)
"""
PLAIN = """
    first = Placeholder(dtype=float, shape=[2, 3])
    second = Placeholder(dtype=int32, shape=[2, 3])
    numbers = Cast(second, SrcT=int32, DstT=float)
    sum = Add(first, numbers, T=float)
    product = Mul(second, second, T=int32)
"""
LABELS = ['a "rose" \\(x)', "$tulip, ☘", "dandelion \\"]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("swiftc") is None, reason="there is no Swift compiler for Linux"
)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The stand-ins, compiled."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in MODULES:
        swiftc(
            "-swift-version", "6", "-parse-as-library", "-emit-module", "-emit-library", "-static", "-I", folder,
            "-module-name", name, "-emit-module-path", folder / f"{name}.swiftmodule", "-o", folder / f"lib{name}.a",
            STUBS / f"{name}.swift",
        )  # fmt: skip
    return folder


def swiftc(*words: object) -> None:
    made = subprocess.run(["swiftc", *map(str, words)], capture_output=True, text=True, timeout=600)
    assert made.returncode == 0, made.stdout + made.stderr


def project(which: str, out: pathlib.Path, engine: str = "tflite", **how: Any) -> pathlib.Path:
    if which == PLAIN:
        how["outputs"] = ["sum", "product"]
    elif which == SHARE:
        how["labels"] = LABELS[:2]
    else:
        how |= {"labels": LABELS, "input_mean": 127.5, "input_std": 64.0}
    make_project("ios", parse(which), out, name='Photos & "more" $x ü', engine=engine, **how)
    return out


@pytest.mark.parametrize("engine", ["tflite", "coreml"])
@pytest.mark.parametrize("which", [COLOURS, PLAIN], ids=["pictures", "arrays"])
def test_every_file_compiles_without_a_warning(
    which: str, engine: str, stubs: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    if engine == "coreml" and find_spec("coremltools") is None:
        pytest.skip("the extra 'coreml' is not installed")
    out = project(which, tmp_path / "out", engine)
    word = next(out.glob("*.xcodeproj")).stem
    for mode in MODES:
        how = [
            "-swift-version",
            mode,
            "-strict-concurrency=complete",
            "-warnings-as-errors",
            "-parse-as-library",
            "-I",
            stubs,
        ]
        swiftc(
            *how, "-enable-testing", "-emit-module", "-module-name", word,
            "-emit-module-path", tmp_path / f"{word}.swiftmodule", *sorted((out / "App").glob("*.swift")),
        )  # fmt: skip
        swiftc(*how, "-I", tmp_path, "-typecheck", "-module-name", f"{word}Tests", *(out / "Tests").glob("*.swift"))


def program(out: pathlib.Path, stubs: pathlib.Path) -> pathlib.Path:
    """The project's model and what feeds it, without views, as a program beside its files."""
    made = out / "App" / "program"
    sources = [out / "App" / f"{name}.swift" for name in ("Facts", "Classifier", "LiteRTEngine")]
    libraries = [stubs / f"lib{name}.a" for name in ("CoreGraphics", "TensorFlowLite")]
    swiftc("-swift-version", "6", "-Onone", "-I", stubs, "-o", made, STUBS / "main.swift", *sources, *libraries)
    return made


def ran(*words: object) -> str:
    environment = {**os.environ, "PYTHON": sys.executable, "RUN_TFLITE": str(STUBS / "run_tflite.py")}
    made = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, env=environment)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


@pytest.mark.parametrize("which", [COLOURS, GRAY, SHARE], ids=["colours", "gray", "share"])
def test_pictures_are_answered_as_in_python(which: str, stubs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = project(which, tmp_path / "out")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    np.dstack([pixels, np.zeros((8, 12), np.uint8)]).tofile(tmp_path / "pixels.bin")
    said = ran(program(out, stubs), "picture", 12, 8, tmp_path / "pixels.bin", tmp_path)
    middle = pixels[:, 2:10].astype(np.float32)
    if which == GRAY:
        middle = np.round(middle @ np.float32([[0.299], [0.587], [0.114]]))
    mean, std = (0.0, 255.0) if which == SHARE else (127.5, 64.0)
    with Session(parse(which), engine="reference") as session:
        wanted = session.run("share" if which == SHARE else "scores", {"pixels": ((middle - mean) / std)[None]})
    wanted = np.asarray(wanted).reshape(-1)
    found = np.fromfile(tmp_path / "found_0.bin", np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    scores = np.array([1 - wanted[0], wanted[0]]) if which == SHARE else wanted
    rows = [line.split("\t") for line in said.splitlines()]
    order = np.argsort(-scores, kind="stable")
    assert [(int(row[0]), row[2]) for row in rows] == [(place, LABELS[place]) for place in order]
    np.testing.assert_allclose([float(row[1]) for row in rows], scores[order], rtol=1e-5)
    decayed = np.where(0.75 * found > 0.01, 0.75 * found, 0) + np.where(found / 2 > 0.05, found / 8, 0)
    np.testing.assert_allclose(np.fromfile(tmp_path / "average.bin", np.float32), decayed, rtol=1e-5)


def test_arrays_go_in_and_come_out_whatever_they_hold(stubs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = project(PLAIN, tmp_path / "out")
    made = program(out, stubs)
    ran(made, "arrays", out / "Tests")
    for place in range(2):
        wanted = np.fromfile(out / f"Tests/output_{place}.bin", np.float32)
        np.testing.assert_array_equal(np.fromfile(out / f"Tests/found_{place}.bin", np.float32), wanted)
    np.float32([1e30, -np.inf, np.nan, 0.5, -2.5, 3]).tofile(tmp_path / "input_0.bin")
    np.float32([1e30, -np.inf, np.nan, 2.5, -3.5, 46340]).tofile(tmp_path / "input_1.bin")
    ran(made, "arrays", tmp_path)
    whole = np.array([2**31 - 1, -(2**31), 0, 2, -4, 46340], np.int32)
    first = np.fromfile(tmp_path / "input_0.bin", np.float32)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "found_0.bin", np.float32), first + whole.astype(np.float32))
    np.testing.assert_array_equal(np.fromfile(tmp_path / "found_1.bin", np.float32), (whole * whole).astype(np.float32))


def test_a_file_that_takes_bytes_is_given_their_codes(stubs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    samples = np.random.default_rng(0).uniform(-2, 2, (8, 8, 8, 3)).astype(np.float32)
    export(parse(COLOURS), tmp_path / "net.tflite", mode="static", samples=samples, io="uint8", labels=LABELS,
           input_mean=127.5, input_std=64.0)  # fmt: skip
    out = tmp_path / "out"
    make_project("ios", tmp_path / "net.tflite", out, name="Bytes", engine="tflite")
    made = program(out, stubs)
    ran(made, "arrays", out / "Tests")
    wanted = np.fromfile(out / "Tests/output_0.bin", np.float32)
    np.testing.assert_array_equal(np.fromfile(out / "Tests/found_0.bin", np.float32), wanted)
    np.float32([1e30, -1e30, np.nan] * 64).tofile(tmp_path / "input_0.bin")
    ran(made, "arrays", tmp_path)  # the ends of what codes stand for
    assert np.isfinite(np.fromfile(tmp_path / "found_0.bin", np.float32)).all()
