"""Libraries on a Cortex-M7 in qemu give the outputs that they give here."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from c_programs import filled, library_of, program_of
from pocketgraph.exporting.c.cortex_m import CODE, RAM, fits
from pocketgraph.formats.files import write_files
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.pipeline import quantize_program

TOOLS = ("make", "arm-none-eabi-gcc", "qemu-system-arm")
lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
needs_board = pytest.mark.skipif(bool(lacking), reason=f"not here: {', '.join(lacking)}")
NETWORK = """
    x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
    k = Const(float[3, 3, 3, 8])
    d = Const(float[3, 3, 8, 1])
    axes = Const(int32 [1, 2])
    w = Const(float[8, 5])
    first = Conv2D(x, k, T=float, strides=[1, 2, 2, 1], padding="SAME")
    relu = Relu6(first, T=float)
    deep = DepthwiseConv2dNative(relu, d, T=float, strides=[1, 1, 1, 1], padding="SAME")
    mean = Mean(deep, axes, T=float, Tidx=int32)
    dense = MatMul(mean, w, T=float)
    scores = Softmax(dense, T=float)
"""


def float_network() -> Program:
    return program_of(parse(filled(NETWORK)), ["scores"])


def coded_network() -> Program:
    rng = np.random.default_rng(5)
    samples = [[rng.normal(0, 1, (1, 12, 12, 3)).astype(np.float32)] for _ in range(2)]
    options = QuantizationOptions(rounding="nearest", io="int8", float_share=0.0, widen=0.0)
    return quantize_program(float_network(), lambda: iter(samples), len(samples), options).converted.program


def on_board(network: Program, folder: pathlib.Path, away: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs ``make cortex-m`` with golden outputs that are wrong by ``away``."""
    array = np.random.default_rng(6).normal(0, 1, (1, 12, 12, 3)).astype(np.float32)
    arrays = as_fed([array], network.inputs)
    wanted: list[Any] = [right + right.dtype.type(away) for right in ProgramRunner(network)(arrays)]
    write_files(str(folder), library_of(network, golden=(arrays, wanted)).files)
    return subprocess.run(["make", "-C", str(folder), "cortex-m"], capture_output=True, text=True, timeout=300)


@needs_board
@pytest.mark.parametrize("network", [float_network, coded_network])
def test_a_library_gives_its_golden_outputs(network: Callable[[], Program], tmp_path: pathlib.Path) -> None:
    done = on_board(network(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert done.stdout.count("passed") == 1


@needs_board
def test_wrong_outputs_are_an_error(tmp_path: pathlib.Path) -> None:
    done = on_board(float_network(), tmp_path, away=1)
    assert done.returncode != 0
    assert "FAILED" in done.stdout


def test_libraries_that_the_board_has_no_room_for_have_no_target() -> None:
    network = float_network()
    assert "cortex-m" in library_of(network).files["Makefile"].decode()
    larger = library_of(network, weights="file")
    assert "cortex-m" not in larger.files["Makefile"].decode()
    assert "net_cortex_m.c" not in larger.files
    assert not fits(weights=CODE, arena=0, outputs=0)
    assert not fits(weights=0, arena=RAM // 2, outputs=RAM // 2)
