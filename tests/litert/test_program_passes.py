"""What each program pass does, as a picture: the program that is given, and the one that results of this pass.

Both compute what the reference kernels compute of the graph that the program was lowered from.
"""

from __future__ import annotations

import io
from textwrap import dedent

import numpy as np
import pytest

from litert.parts import lowered
from litert.program_pass_pictures import PICTURES
from litert.program_text import program_text
from litert.single_ops import run_reference
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting import narrow_convolutions, winograd
from pocketgraph.litert.rewriting.optimize import FOR_LATENCY, OPTIMIZE
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.program_pass import copied
from support import assert_close, with_weights

PASSES = {row.name: row for row in (*OPTIMIZE, *FOR_LATENCY)}
ROUNDING = {"use_eight_bits": 0.02}
"""Passes that round: how far, as a share of the largest result."""


def run(program: Program, name: str) -> None:
    PASSES[name].run(program)
    program.drop_unused()


def computed(program: Program, x: np.ndarray) -> np.ndarray:
    """What the program gives; LiteRT wants biases."""
    complete = copied(program)
    run(complete, "add_missing_biases")
    return ProgramRunner(complete)([x])[0]


@pytest.mark.parametrize("name", PICTURES)
def test_the_result_of_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_convolutions, "LANES", 16)
    monkeypatch.setattr(narrow_convolutions, "has_wide_kernels", lambda: False)
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: name.startswith("winograd"))
    picture, rng = PICTURES[name], np.random.default_rng(0)
    drawn = {key: rng.normal(size=shape).astype(np.float32) for key, shape in picture.weights.items()}
    graph = with_weights(picture.graph, **drawn)
    shape = graph["x"].attrs["shape"].known
    nodes = [node for node in graph if node.name != "x"]
    program = lowered(graph, nodes, ["x:0"], ["y:0"], {"x:0": (FLOAT, shape)}, without=PASSES.keys())
    for earlier in picture.earlier:
        run(program, earlier)
    assert program_text(program) == dedent(picture.given).strip().splitlines()
    x = rng.normal(size=shape).astype(np.float32)
    (expected,) = run_reference(graph, {"x:0": x}, ["y:0"])
    assert_close(computed(program, x), expected, 1e-5)
    run(program, name)
    assert program_text(program) == dedent(picture.result).strip().splitlines()
    assert_close(computed(program, x), expected, ROUNDING.get(name, 1e-5))


def test_each_pass_has_a_picture() -> None:
    assert PICTURES.keys() == PASSES.keys()


@pytest.mark.parametrize("is_x86", [True, False])
def test_an_emulated_machine_does_not_have_what_its_host_says(is_x86: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """qemu's user mode and arm64 containers on x86 may show the host's /proc/cpuinfo."""
    shown = io.BytesIO(b"flags\t\t: fpu avx512f avx512dq\n")
    monkeypatch.setattr(narrow_convolutions, "open", lambda *how: shown, raising=False)
    monkeypatch.setattr(narrow_convolutions, "is_x86", lambda: is_x86)
    assert narrow_convolutions.has_wide_kernels.__wrapped__() == is_x86
