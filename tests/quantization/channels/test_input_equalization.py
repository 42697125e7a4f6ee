"""An input with strong and weak channels gets codes that suit both."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.conversion.to_graphdef import to_graphdef
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantize_nets import float_program, judged

FRAMES, CHANNELS = 20, 10
STRENGTH = np.array([100, *[2.0] * (CHANNELS - 1)])  # as the first cepstral coefficient is


def flat(shape: str = f"[1,{FRAMES},{CHANNELS}]") -> Program:
    return float_program(flat_graph(shape), ["y"])


def flat_graph(shape: str = f"[1,{FRAMES},{CHANNELS}]") -> Graph:
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={shape})
        flat = Reshape(x, shape, T=float, Tshape=int32)
        fc = MatMul(flat, w1, T=float)
        r = Relu(fc, T=float)
        y = MatMul(r, w2, T=float)
    """)
    weights = rng.normal(0, 0.1, (FRAMES * CHANNELS, 24)) / np.tile(STRENGTH, FRAMES)[:, None]
    extra = [
        const("shape", np.array([1, FRAMES * CHANNELS], np.int32)),
        const("w1", weights.astype(np.float32)),
        const("w2", rng.normal(0, 0.5, (24, 6)).astype(np.float32)),
    ]
    return Graph([*graph, *extra])


def image(wide: int = 48, classes: int = 12) -> Program:
    return float_program(image_graph(wide, classes), ["y"])


def image_graph(wide: int = 48, classes: int = 12) -> Graph:
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,{FRAMES},{CHANNELS}])
        image = Reshape(x, shape, T=float, Tshape=int32)
        c = Conv2D(image, w1, strides=[1,2,2,1], padding="SAME", T=float)
        r = Relu(c, T=float)
        c2 = Conv2D(r, w2, strides=[1,2,2,1], padding="SAME", T=float)
        y = Mean(c2, axes, T=float, Tidx=int32)
    """)
    extra = [
        const("shape", np.array([1, FRAMES, CHANNELS, 1], np.int32)),
        const("w1", rng.normal(0, 0.1, (3, 3, 1, wide)).astype(np.float32)),
        const("w2", rng.normal(0, 0.1, (3, 3, wide, classes)).astype(np.float32)),
        const("axes", np.array([1, 2], np.int32)),
    ]
    return Graph([*graph, *extra])


def samples(strength: np.ndarray, count: int = 40, seed: int = 1) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[(rng.normal(0, 1, (1, FRAMES, CHANNELS)) * strength).astype(np.float32)] for _ in range(count)]


def test_channels_of_features_are_made_even() -> None:
    program = flat()
    held = samples(STRENGTH)
    outcome = quantize_program(program, lambda: iter(held), 40, QuantizationOptions(float_share=0, rounding="nearest"))
    assert any("made even" in note for note in outcome.notes), outcome.notes
    assert judged(program, outcome.program, samples(STRENGTH, 40, 2)).snr > 100  # the same is computed
    codes = quantize_program(
        program, lambda: iter(held), 40, QuantizationOptions(float_share=0, rounding="nearest", io="int8")
    )
    one_scale = judged_codes(program, codes.converted.program)  # for what goes in, as it is asked for
    assert judged(program, outcome.converted.program, samples(STRENGTH, 40, 2)).snr > one_scale + 4


def judged_codes(program: Program, coded: Program) -> float:
    from pocketgraph.quantization.core.program_runner import as_fed

    comparison = Comparison()
    first, second = ProgramRunner(program), ProgramRunner(coded)
    for sample in samples(STRENGTH, 40, 2):
        comparison.add(first(sample)[0], second.numbers(as_fed(sample, coded.inputs))[0])
    return comparison.snr


def test_even_channels_stay_as_they_are() -> None:
    program = flat()
    held = samples(np.ones(CHANNELS))
    outcome = quantize_program(program, lambda: iter(held), 40, QuantizationOptions(float_share=0))
    assert not any("made even" in note for note in outcome.notes)
    assert outcome.program.operations[0] is program.operations[0]


def test_an_only_channel_is_copied_with_staggered_steps() -> None:
    program = image()
    strength = np.array([100, *[0.5] * (CHANNELS - 1)])
    held = samples(strength)
    outcome = quantize_program(program, lambda: iter(held), 40, QuantizationOptions(float_share=0))
    assert any("staggered steps" in note for note in outcome.notes), outcome.notes
    assert judged(program, outcome.program, samples(strength, 40, 2)).snr > 100
    layer = next(operation for operation in outcome.program.operations if operation.code == "CONV_2D")
    assert layer.inputs[0] is not None
    assert layer.inputs[0].shape[3] > 1


def test_copies_that_would_make_the_file_larger_are_not_made() -> None:
    program = image(classes=1)
    outcome = quantize_program(program, lambda: iter(samples(STRENGTH)), 40, QuantizationOptions(float_share=0))
    assert not any("staggered steps" in note for note in outcome.notes)


@pytest.mark.parametrize("name", ["fc", "r"])
def test_a_layer_that_is_kept_in_float_is_left_alone(name: str) -> None:
    program = flat()
    outcome = quantize_program(
        program, lambda: iter(samples(STRENGTH)), 40, QuantizationOptions(float_share=0, keep=[f"{name}"])
    )
    assert not any("made even" in note for note in outcome.notes)


@pytest.mark.parametrize(("graph", "said"), [(flat_graph(), "made even"), (image_graph(), "staggered")])
def test_what_is_put_before_the_first_layer_is_written_into_a_graph_too(graph: Graph, said: str) -> None:
    program, lowered = lowered_graph(graph, ["y"])
    strength = STRENGTH if said == "made even" else np.array([100, *[0.5] * (CHANNELS - 1)])
    held = samples(strength)
    outcome = quantize_program(program, lambda: iter(held), 40, QuantizationOptions(float_share=0))
    assert any(said in note for note in outcome.notes), outcome.notes
    running = ProgramRunner(outcome.converted.program)
    session = Session(to_graphdef(outcome.converted.program, lowered, ["y"]))
    for sample in samples(strength, 5, 2):
        wanted = running.numbers(sample)[0]
        np.testing.assert_allclose(session.run(["y"], {"x": sample[0]})[0], wanted, atol=0.02 * np.abs(wanted).max())
