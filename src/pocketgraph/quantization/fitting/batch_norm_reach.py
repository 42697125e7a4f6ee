"""Whether samples reach as far as those of training, whose means and deviations the first batch norm kept by channel.

Right samples lie about one of its deviations from its means; pixels from 0 to 255, where -1 to 1 were trained on, some
hundred, and the other way round they hardly vary. Other mistakes are too near to right ones to be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph import Graph
from pocketgraph.litert.program import Program
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.layerwise_execution import LayerwiseExecution
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantized_weights import float_weights
from pocketgraph.quantization.fitting.im2col import products
from pocketgraph.quantization.fitting.layer_reconstruction import FitSettings, collect
from pocketgraph.quantization.fitting.weight_only_fitting import layer_statistics

SAMPLES, ROWS = 8, 2048  # that are looked at
FEWEST_ROWS = 8  # that differ; fewer, as of one sample or of blank pictures, do not show how much rows vary
FARTHEST, LEAST_VARIED = 16.0, 1 / 32  # times the deviation in training, of the median value and channel
WIDTH = 3  # deviations to either side that nearly all values lie in


def told_other_reach(program: Program, graphs: Sequence[Graph], samples: Samples, *, are_pictures: bool = False) -> str:
    """A warning where samples are plainly of another range than in training; "" where they are not, or nothing tells.

    Args:
        program: the float program.
        graphs: those that it was lowered from.
        samples: what it is fed.
        are_pictures: whether these are read from files of pictures, and scaled as the caller says.
    """
    layer, trained = next(iter(layer_statistics(program, graphs).items()), (None, None))
    if layer is None or trained is None or not (trained.deviation > 0).any():
        return ""
    if not trained.mean.any() and (trained.deviation == 1).all():  # as it was before any training
        return ""
    held = list(islice(samples(), SAMPLES))
    operand = LayerwiseExecution(held).to(program, operator_rules.data(layer))
    (rows,) = collect(layer, [operand], len(held), FitSettings(rows=ROWS))
    weights, bias = float_weights(layer)
    made = (products(layer, rows, weights) + bias)[:, trained.deviation > 0]
    mean, deviation = (numbers[trained.deviation > 0] for numbers in trained)
    differing = made[np.unique(rows.reshape(len(rows), -1), axis=0, return_index=True)[1]]
    varied = np.median(differing.std(axis=0) / deviation) > LEAST_VARIED or len(differing) < FEWEST_ROWS
    if varied and np.median(np.abs(made - mean) / deviation) < FARTHEST:
        return ""
    low, high = (mean - WIDTH * deviation).min(), (mean + WIDTH * deviation).max()
    read = {operator_rules.data(layer)}
    for operation in reversed(program.operations):
        if not read.isdisjoint(operation.outputs):
            read.update(operation.operands)
    fed = [
        f"{float(array.min()):.3g} to {float(array.max()):.3g} for '{value.name}'"
        for value, array in zip(program.inputs, held[0], strict=True)
        if value in read
    ]
    how = f" ({option('input_mean')}, {option('input_std')})" if are_pictures else ""
    return (
        f"warning: '{layer.outputs[0].name}' is, before any activation, {made.min():.3g} to {made.max():.3g} for these "
        f"samples, and was about {low:.3g} to {high:.3g} in training, as its batch norm tells: their own range "
        f"({', '.join(fed)} in the first) is another than in training; scale them as it did{how}"
    )
