"""A quantized model layer by layer: how far each tensor is off, through what, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT, INT16
from pocketgraph.litert.operator_traits import WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.two_threads import both
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.layerwise_execution import ShownProgram, bytes_of, groups_to_show
from pocketgraph.quantization.core.observation import BINS, Observation
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import Sample, Samples, Views, as_fed, look_at, real
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights, rounded_values
from pocketgraph.quantization.core.thread_map import mapped_ahead
from pocketgraph.quantization.core.value_range import HIGHEST_16
from pocketgraph.quantization.mixed_precision.sensitivity import decibels
from pocketgraph.quantization.report.error_split import with_probes
from pocketgraph.runtime.comparison.answer_metrics import Comparison, Likeness

BARS = 64  # of a histogram in the report
MOST_COMPARED = 16  # samples that both models are run on
MOST_COMPARED_BYTES = 1 << 34  # of the float tensors that are looked at for it, of all samples together
LOUD_DECIBELS = 25.0  # decibels; a tensor whose codes alone leave less is worth a word
CLIPPED_SHARE = 0.001  # share of values outside of the range
ROUNDING_ACTIONS = {
    "adaround": "weights fitted",
    "corrected": "weights rounded, bias corrected",
    "fitted": "weights fitted",
    "nearest": "weights rounded",
}
"""What was done to the weights, by how they are rounded."""
UNEVEN_CHANNEL_RATIO = 64.0  # times between the strongest and the weakest channel


@dataclass
class LayerReport:
    """One operation of the float model and its eight-bit form.

    Attributes:
        name: the tensor that it makes.
        operator: LiteRT's name of it.
        in_float: whether it still computes in float.
        low, high: the smallest and largest value seen.
        chosen_low, chosen_high: the range that has codes; NaN for a tensor without.
        scale: between two codes.
        clipped: the share of values outside of the range.
        histogram: shares of the values in equal bins from ``low`` to ``high``.
        activation_noise: decibels left at the scores when this tensor alone has codes.
        weight_noise: decibels of the layer's own weights, nearest codes against float.
        from_weights: decibels left in the layer's results when only its weights have codes.
        from_operand: decibels left in them when only its operand has codes.
        from_steps: decibels of this tensor that the width of its steps leaves.
        from_cutting: decibels of it that cutting values off leaves; infinite where none are.
        snr, cosine: of this tensor in the quantized model, with all errors before it.
        action: what was done or can be.
    """

    name: str
    operator: str
    in_float: bool
    low: float
    high: float
    chosen_low: float = math.nan
    chosen_high: float = math.nan
    scale: float = math.nan
    clipped: float = 0.0
    histogram: list[float] = field(default_factory=list)
    activation_noise: float = math.nan
    weight_noise: float = math.nan
    from_weights: float = math.nan
    from_operand: float = math.nan
    from_steps: float = math.nan
    from_cutting: float = math.nan
    snr: float = math.inf
    cosine: float = 1.0
    action: str = ""


@dataclass
class QuantizationReport:
    """What is known of a quantized model.

    Attributes:
        layers: in running order.
        total: the model's outputs beside those of the float model, over the samples looked at.
        notes: what was done and why.
        samples: how many samples were looked at.
        float_bytes, bytes: of the file in float, or of the weights where there is none; and of the file.
        judged, are_unseen: see QuantizationState.
        steps: what became of each step, by its name.
    """

    layers: list[LayerReport]
    total: Comparison
    notes: list[str]
    samples: int
    float_bytes: int
    bytes: int
    judged: Comparison | None = None
    are_unseen: bool = False
    steps: Mapping[str, str] = field(default_factory=dict)

    def ranked(self) -> list[LayerReport]:
        """The layers by measured sensitivity, the most sensitive first; those that stay in float last.

        Where no tensor has codes, what the weights do to each layer's results is the measure.
        """
        for measure in ("activation_noise", "from_weights", "weight_noise"):
            measured = [layer for layer in self.layers if not math.isnan(getattr(layer, measure))]
            if measured:
                return sorted(measured, key=lambda layer: (layer.in_float, float(getattr(layer, measure))))
        return []


def report_of(
    outcome: QuantizationState,
    samples: Samples,
    size: int,
    threads: int = 1,
    progress: Progress | None = None,
    float_size: int | None = None,
) -> QuantizationReport:
    """Looks at every layer.

    Args:
        outcome: what ``quantize`` gave.
        samples: inputs to run both models on.
        size: bytes of the model file.
        threads: how many threads to compute with.
        progress: told how far it is.
        float_size: bytes of a file of the float model; by default its weights are counted.
    """
    exact = outcome.program
    shown = [o for o in exact.operations if any(v in outcome.converted.values and v.dtype is FLOAT for v in o.outputs)]
    coded = set(outcome.converted.quantized)
    layers, compared = both(
        lambda: [_layer(outcome, each, each in coded) for each in shown],
        lambda: compare_layers(outcome, [o.outputs[0] for o in shown], samples, threads, progress),
        threads,
    )
    for layer, operation in zip(layers, shown, strict=True):
        likeness = compared.by_tensor.get(operation.outputs[0])
        if likeness is not None and likeness.count:
            layer.snr, layer.cosine = likeness.snr, likeness.cosine
        found = compared.apart.get(operation, {})
        if "weights" in found and found["weights"].count:
            layer.from_weights = found["weights"].snr
        if "operand" in found and found["operand"].count:
            layer.from_operand = found["operand"].snr
    weights = sum(v.constant.nbytes for v in _constants(exact.operations) if v.constant is not None)
    notes, judged = list(outcome.notes), outcome.judged
    return QuantizationReport(
        layers,
        compared.total,
        notes,
        compared.total.count,
        float_size or weights,
        size,
        judged,
        outcome.are_unseen,
        outcome.done,
    )


@dataclass
class LayerComparison:
    """The tensors of a quantized program beside those of the float one, over samples.

    Attributes:
        by_tensor: each float tensor that has a stand-in there.
        apart: by layer with coded weights, its results with one kind of codes alone; see ``Probe``.
        total: the outputs.
    """

    by_tensor: dict[Value, Likeness]
    apart: dict[Operation, dict[str, Likeness]]
    total: Comparison


def compare_layers(
    outcome: QuantizationState,
    values: Sequence[Value],
    samples: Samples,
    threads: int = 1,
    progress: Progress | None = None,
) -> LayerComparison:
    """Runs each program once a sample, the float one with the probes beside it.

    Args:
        outcome, samples, threads, progress: as for ``report_of``.
        values: tensors of the float program to compare.
    """
    tell, stands_for, made = progress or silent, outcome.converted.values, outcome.converted.program
    alive = {v for o in made.operations for v in (*o.outputs, *o.inputs) if v is not None}
    values = [v for v in values if stands_for[v] in alive]
    probed, probes = with_probes(outcome)
    layers = dict.fromkeys(probe.operation.outputs[0] for probe in probes.values())
    result = LayerComparison(
        {value: Likeness() for value in values}, {}, Comparison(are_forecasts=outcome.are_forecasts)
    )
    for operation, kind in probes.values():
        result.apart.setdefault(operation, {})[kind] = Likeness()
    if not any(True for _ in islice(samples(), 1)):
        return result  # without a program compiled for nothing
    beside: dict[Value, list[Value]] = {value: [value] for value in (*values, *layers)}
    for value, probe in probes.items():
        beside[probe.operation.outputs[0]].append(value)
    groups = groups_to_show(probed, list(beside.values()))
    stand_ins = [[stands_for[value] for value in group if value in result.by_tensor] for group in groups]
    groups[-1] += probed.outputs
    stand_ins[-1] += made.outputs
    first, second = both(
        lambda: ShownProgram(probed, groups, threads),
        lambda: ShownProgram(made, stand_ins, max(threads - 1, 1), in_floats=outcome.has_float_sums),
        threads,
    )
    most = max(min(MOST_COMPARED, MOST_COMPARED_BYTES // max(bytes_of(groups), 1)), 1)
    parts = ((sample, place) for sample in islice(samples(), most) for place in range(len(groups)))
    coded_views: Iterator[Views] = iter(())

    def coded(part: tuple[Sample, int]) -> tuple[Sample, int, Views]:
        nonlocal coded_views
        sample, place = part
        if not place:
            coded_views = second(as_fed(sample, made.inputs))
        return sample, place, next(coded_views)

    exact_views: Iterator[Views] = iter(())
    for sample, place, codes in mapped_ahead(coded, parts, min(threads - 1, 1)):

        def look(value: Value, exact: Views, codes: Views = codes) -> None:
            if value in probes:
                operation, kind = probes[value]
                result.apart[operation][kind].add(exact[operation.outputs[0]], exact[value])
            elif value in result.by_tensor:
                stand_in = stands_for[value]
                result.by_tensor[value].add(exact[value], real(stand_in, codes[stand_in]))

        exact_views = exact_views if place else first.views(sample)
        exact = next(exact_views)
        look_at(exact, look, threads)
        if place == len(groups) - 1:
            wanted = [exact[v] if v.constant is None else v.constant.numpy() for v in probed.outputs]
            given = [codes[v] if v.constant is None else v.constant.numpy() for v in made.outputs]
            _add_outputs(result.total, wanted, list(map(real, made.outputs, given)))
            tell("comparing layers", result.total.count, MOST_COMPARED)
        del exact, codes
    return result


def _add_outputs(total: Comparison, exact: list[Any], coded: list[Any]) -> None:
    """The only output as it is; of several all numbers, which have no best class."""
    if len(exact) == 1:
        total.add(exact[0], coded[0])
    else:
        joined = (np.concatenate([array.reshape(-1, 1) for array in arrays]) for arrays in (exact, coded))
        total.add(*joined)


def _constants(operations: list[Operation]) -> list[Value]:
    found = dict.fromkeys(v for operation in operations for v in operation.inputs if v is not None)
    return [value for value in found if value.constant is not None]


def _layer(outcome: QuantizationState, operation: Operation, coded: bool) -> LayerReport:
    """What is known of a layer before the programs run."""
    value = operation.outputs[0]
    seen = outcome.seen.get(value) or Observation(value.name)
    layer = LayerReport(value.name, operation.code, not coded, math.nan, math.nan)
    if seen.samples:
        layer.low, layer.high = float(seen.low), float(seen.high)
        layer.histogram = _bars(seen.counts, seen.centres, layer.low, layer.high)
    stand_in = outcome.converted.values[value]
    if stand_in.quantization is not None:
        scale, zero = stand_in.quantization.scales[0], stand_in.quantization.zero_points[0]
        layer.scale = scale
        layer.chosen_low, layer.chosen_high = (-128 - zero) * scale, (127 - zero) * scale
        if stand_in.dtype is INT16:
            layer.chosen_low, layer.chosen_high = -HIGHEST_16 * scale, HIGHEST_16 * scale
        _kinds(layer, seen, scale)
        outside = (seen.centres < layer.chosen_low - scale) | (seen.centres > layer.chosen_high + scale)
        layer.clipped = float(seen.counts[outside].sum() / max(seen.counts.sum(), 1))
    if value in outcome.sensitivity:
        layer.activation_noise = decibels(outcome.sensitivity[value])
    if operation in outcome.weights or (coded and is_layer(operation)):
        layer.weight_noise = _weight_noise(outcome, operation)
    layer.action = _action(outcome, operation, layer)
    return layer


def _kinds(layer: LayerReport, seen: Observation, scale: float) -> None:
    """The noise of the steps and that of cutting off, told apart by the histogram."""
    centres, counts = seen.centres, seen.counts
    power = float((centres**2 * counts).sum())
    if not power:
        return
    beyond = np.maximum(layer.chosen_low - centres, 0) + np.maximum(centres - layer.chosen_high, 0)
    beyond = np.where(beyond > scale, beyond, 0)  # less is rounding, of the bin if not of the code
    inside = counts[(beyond == 0) & (np.abs(centres) > scale / 2)].sum()
    layer.from_steps = decibels(float(inside) * scale**2 / 12 / power)
    layer.from_cutting = decibels(float((beyond**2 * counts).sum()) / power)


def _weight_noise(outcome: QuantizationState, operation: Operation) -> float:
    """Of the codes nearest to the float weights; fitted ones are off on purpose."""
    values, bias = float_weights(operation)
    source = outcome.converted.values[operator_rules.data(operation)].quantization
    bits = outcome.weights[operation].bits if operation in outcome.weights else 8
    scale, axis = source.scales[0] if source else math.inf, WEIGHT_AXIS[operation.code]
    apart = rounded_values(values, bias, axis, scale, bits).numpy()
    apart -= values
    power = float(np.square(values, out=values).sum())
    return decibels(float(np.square(apart, out=apart).sum()) / power) if power else math.inf


def _action(outcome: QuantizationState, operation: Operation, layer: LayerReport) -> str:
    if operation in outcome.kept:
        return "kept in float: eight bits would hurt here"
    if operation in outcome.hybrid:
        return "weights in eight bits, results in float, so that none is cut off or rounded"
    if layer.in_float:
        if operation in outcome.weights:
            return f"weights in {outcome.weights[operation].bits} bits"
        if operation in outcome.halves:
            return "weights in float16: codes would hurt here"
        return "float: no eight-bit form, or it would lose for nothing"
    seen = outcome.seen[operation.outputs[0]]
    words = []
    if operation in outcome.weights:
        words.append(
            ROUNDING_ACTIONS[outcome.options.rounding] + (" in 4 bits" if outcome.weights[operation].bits == 4 else "")
        )
    if not math.isnan(layer.activation_noise) and layer.activation_noise < LOUD_DECIBELS:
        words.append(f"hurts most: try {option('keep')}={layer.name} or a higher {option('float_share')}")
    if layer.clipped > CLIPPED_SHARE:
        words.append(f"{layer.clipped:.2%} of the values are cut off: {option('ranges')}=minmax keeps them")
    if seen.channel_low is not None and seen.channel_high is not None:
        strength = np.maximum(np.abs(seen.channel_low), np.abs(seen.channel_high))
        alive = strength[strength > 0]
        if alive.size and alive.max() / alive.min() > UNEVEN_CHANNEL_RATIO:
            words.append(f"channels of very different strength: try {option('equalize')}")
    if seen.low == seen.high:
        words.append("constant: this layer always gives the same")
    return "; ".join(words)


def _bars(counts: Any, centres: Any, low: float, high: float) -> list[float]:
    if high <= low:
        return [1.0]
    index = np.clip(((centres - low) / (high - low) * BARS).astype(int), 0, BARS - 1)
    inside = (centres >= low - (high - low) / BINS) & (centres <= high + (high - low) / BINS)
    bars = np.bincount(index[inside], weights=counts[inside], minlength=BARS)
    return [float(bar) for bar in bars / max(bars.sum(), 1e-30)]
