"""What keeps a logarithm finite is no step of eight bits: it stays in float, with the layer in front of it."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.float_epsilons import epsilon_operations
from quantize_nets import float_program

RNG = np.random.default_rng(3)
TEXT = """
    spectrum = Placeholder(dtype=float, shape=[1, 64])
    energies = MatMul(spectrum, bands, T=float)
    tiny = Const(float 1e-6)
    above = Add(energies, tiny, T=float)
    logs = Log(above, T=float)
    hidden = MatMul(logs, weights, T=float)
    bent = Relu(hidden, T=float)
    scores = MatMul(bent, heads, T=float)
"""
SHAPES = {"bands": (64, 32), "weights": (32, 64), "heads": (64, 4)}


def network() -> Graph:
    weights = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    weights["bands"] = np.maximum(weights["bands"], 0)
    return Graph([*parse(TEXT), *(const(name, value) for name, value in weights.items())])


@pytest.mark.parametrize("mode", ["static", "dynamic", "weights"])
def test_silence_keeps_its_logarithm(mode: str) -> None:
    """Half of the samples are silent. Their logarithms are about -13.8, and were infinite or no numbers."""
    graph = network()
    samples = np.abs(RNG.normal(size=(40, 64))).astype(np.float32)
    samples[::2, :] = 0
    samples[1::4, 20:] = 0
    model = pocketgraph.quantize(graph, {"spectrum": samples}, mode=mode, outputs=["scores"])  # type: ignore[arg-type]
    found = pocketgraph.evaluate([graph, model], {"spectrum": samples}, outputs=["scores"])
    assert found[1].comparison is not None
    assert found[1].comparison.snr > 25


def test_what_guards_a_pole_is_found_back_to_its_layer() -> None:
    program = float_program(network(), ["scores"])
    found = {operation.outputs[0].name for operation in epsilon_operations(program)}
    assert any(name.startswith(("energies", "above")) for name in found)
    assert not any(name.startswith(("hidden", "bent", "scores", "logs")) for name in found)
    pole = next(operation for operation in program.operations if operation.code == "LOG")
    assert pole.inputs[0] is not None
    for low, high in ((0.5, 2.0), (-2.0, -0.5)):
        assert epsilon_operations(program, {pole.inputs[0]: Range(low, high)}) == []
    for low, high in ((1e-6, 2.0), (-2.0, -1e-6), (-1.0, 1.0)):
        assert epsilon_operations(program, {pole.inputs[0]: Range(low, high)}) != []


def test_a_layer_norm_keeps_only_what_is_added() -> None:
    graph = parse("""
        variance = Placeholder(dtype=float, shape=[1, 8])
        axis = Const(int32 [1])
        mean = Mean(variance, axis, T=float, Tidx=int32, keep_dims=true)
        tiny = Const(float 1e-3)
        above = Add(mean, tiny, T=float)
        scale = Rsqrt(above, T=float)
    """)
    found = {operation.code for operation in epsilon_operations(float_program(graph, ["scale"]))}
    assert "ADD" in found
    assert "MEAN" not in found
