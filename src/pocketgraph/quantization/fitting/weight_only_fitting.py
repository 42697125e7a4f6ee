"""The codes of weights alone, fitted to samples or, where there are none, to what batch norms say of the training data.

Made-up inputs lead to other values than real ones. But behind each batch norm training saw a known mean and deviation
of each channel, and a layer in front of it can be scaled so that made-up inputs lead to just these. What the next
layers then read has the right means, by which biases are corrected for the error of the codes (Nagel et al.,
"Data-Free Quantization Through Weight Equalization and Bias Correction", 2019, compute them from a normal distribution
instead), and about the right moments, by which codes are chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.graph import Graph
from pocketgraph.graph.op_traits import PASSES
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import blas_threads
from pocketgraph.litert.operator_traits import HYBRID, WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.eight_bit import int8_weights_pay
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.passes.trained_statistics import ChannelStatistics, trained_statistics
from pocketgraph.quantization.conversion.float16_weights import fits_float16
from pocketgraph.quantization.conversion.int8_conversion import quantized_kernel
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.layerwise_execution import LayerwiseExecution
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import Sample
from pocketgraph.quantization.core.quantization_options import Progress
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights, float_weights, replace_weights, rounded
from pocketgraph.quantization.core.thread_map import mapped_ahead
from pocketgraph.quantization.fitting.im2col import products
from pocketgraph.quantization.fitting.layer_reconstruction import FitSettings, collect
from pocketgraph.quantization.fitting.weight_fitting import fitted_codes, is_reducible
from pocketgraph.quantization.mixed_precision.sensitivity import SensitivityAnalysis, samples_weighed_on
from pocketgraph.quantization.observing.synthetic_inputs import is_picture, synthetic_inputs
from pocketgraph.quantization.program_pass import copied

ACTIVATION_OPS = ("Relu", "Relu6")
"""Not a trait: the nodes that become the activation of a layer, and so may stand behind its batch norm."""
BYTES_OF_EXPANSION = 190  # in the file, of the operation that makes floats of codes, and of its tensor
BYTES_OF_SCALES = 230  # in the file, of what says how codes are meant, beside the scales themselves
CELLS = 1024  # that the bytes to share among small layers are counted in
STRONGEST = 20.0  # factor of a channel: made-up inputs that hardly reach one say nothing of it
SETTLED = 1.4  # median factor of a layer: of a short training, a norm's averages are still far from what it meets

Replacement = tuple[Operation, Array, Array]
"""A layer, and the weights and the bias that it is to have instead, float64."""


@dataclass
class WeightOnlyCodes:
    """The codes of layers' weights.

    Attributes:
        weights: of each layer; those that were not fitted have the nearest codes and their own bias.
        fitted: the layers whose codes are fitted.
        fitted_to: what they are fitted to, in words.
        noise: what the codes of a small layer alone do to the scores, as a share of their power, where that is known.
        float16_noise: the same of float16 weights, where these can be had.
    """

    weights: dict[Operation, QuantizedWeights]
    fitted: list[Operation] = field(default_factory=list)
    fitted_to: str = "the samples"
    noise: dict[Operation, float] = field(default_factory=dict)
    float16_noise: dict[Operation, float] = field(default_factory=dict)


def nearest_codes(layers: Mapping[Operation, int]) -> WeightOnlyCodes:
    """Each weight as its nearest code; ``layers`` have so many bits."""
    return WeightOnlyCodes({operation: rounded(operation, math.inf, bits) for operation, bits in layers.items()})


def fitted_to_samples(
    program: Program,
    layers: Mapping[Operation, int],
    held: Sequence[Sample],
    *,
    dynamic: bool,
    rounding: str,
    threads: int,
    progress: Progress,
) -> WeightOnlyCodes:
    """Codes with which each layer gives what the float one gave, given what those before it have become.

    Args:
        program: the float program.
        layers: those to be coded, and the bits of their weights.
        held: samples.
        dynamic: whether layers will quantize their operand, where LiteRT does that.
        rounding: see QuantizationOptions.
        threads: how many threads to compute with.
        progress: told how far it is.
    """
    result, coded = nearest_codes(layers), copied(program)
    uses = _uses(program)  # where weights are shared, codes and bias stay the same everywhere
    settings = {
        operation: FitSettings(bits=layers[operation], threads=threads)
        for operation in program.operations
        if operation in layers and is_reducible(operation) and uses[operator_rules.weights(operation)] == 1
    }
    _weigh_small_layers(result, program, settings, held, threads)
    wider = wider_weights(result, dynamic=dynamic)
    settings = {operation: fit for operation, fit in settings.items() if operation not in wider}
    exact, given = LayerwiseExecution(held, max(threads - 1, 1)), LayerwiseExecution(held, threads)

    def exact_rows(operation: Operation) -> Array:
        operand = exact.to(program, operator_rules.data(operation))
        return collect(operation, [operand], len(held), settings[operation])[0]

    all_rows = mapped_ahead(exact_rows, settings, min(threads - 1, 1))
    for at, (operation, made) in enumerate(zip(program.operations, coded.operations, strict=True), 1):
        if wider.get(operation) == 16:
            replace_weights(made, *_half(operation))
        if operation not in layers or operation in wider:
            continue
        found = result.weights[operation]
        if operation in settings:
            rows, fit = next(all_rows), settings[operation]
            operand = given.to(coded, operator_rules.data(operation))
            (theirs,) = collect(operation, [operand], len(held), fit)
            found = fitted_codes(operation, rows, theirs, math.inf, found, rounding, fit)
            result.weights[operation] = found
            result.fitted.append(operation)
        _put(made, found, dynamic=dynamic)
        progress("fitting weights", at, len(program.operations))
    return result


def fitted_to_training(
    program: Program,
    layers: Mapping[Operation, int],
    graphs: Sequence[Graph],
    *,
    rounding: str,
    threads: int,
    progress: Progress,
) -> WeightOnlyCodes:
    """Codes by what batch norms tell of the training data; nearest ones for layers of whose operand nothing is known.

    Args:
        program: the float program.
        graphs: those whose nodes its operations name.
        layers, rounding, threads, progress: as for ``fitted_to_samples``.
    """
    result = nearest_codes(layers)
    statistics = layer_statistics(program, graphs)
    known, uses = known_values(program, statistics), _uses(program)
    wanted = [
        operation
        for operation in layers
        if is_reducible(operation)
        and operator_rules.data(operation) in known
        and uses[operator_rules.weights(operation)] == 1
    ]
    held = synthetic_inputs(program, graphs) if wanted else []
    if not held:
        return result
    matched = copied(program)
    alone: dict[Operation, Replacement] = {}
    halves: dict[Operation, Replacement] = {}
    result.fitted_to = "what the batch norms tell of the training data" if statistics else "made-up pictures"
    execution = LayerwiseExecution(held, threads)
    scaled: set[Value] = set()  # what layers give that were scaled, and what is computed of it
    for at, (operation, made) in enumerate(zip(program.operations, matched.operations, strict=True), 1):
        is_first = scaled.isdisjoint(operation.operands)
        if operation in statistics or not is_first:
            scaled.update(operation.outputs)
        if operation in wanted or operation in statistics:
            fit = FitSettings(bits=layers.get(operation, 8), threads=threads)
            operands = execution.to(matched, operator_rules.data(made))
            (rows,) = collect(operation, [operands], len(held), fit)
            factors = np.ones(1)
            if operation in statistics:
                factors = _match(made, rows, statistics[operation], is_first=is_first)
            if operation in wanted:
                nearest = result.weights[operation]
                found = fitted_codes(operation, rows, rows, math.inf, nearest, rounding, fit)
                result.weights[operation] = found
                result.fitted.append(operation)
                if operator_rules.weights(operation).size <= step_limits.MOST_SPARED_ELEMENTS:
                    values, before = float_weights(operation)
                    _, after = float_weights(made)
                    shifted = after + (found.bias - before) * factors
                    alone[operation] = (made, found.numpy() * _across(made, factors), shifted)
                    if fits_float16(values):
                        halves[operation] = (made, _half(operation)[0] * _across(made, factors), after)
        progress("fitting weights", at, len(program.operations))
    if alone:
        analysis = SensitivityAnalysis(matched, lambda: held, step_limits.FEWEST_SYNTHETIC, threads)
        _weigh(result, analysis, alone, halves)
    return result


def _weigh_small_layers(
    result: WeightOnlyCodes,
    program: Program,
    settings: Mapping[Operation, FitSettings],
    held: Sequence[Sample],
    threads: int,
) -> None:
    """Finds what the codes of each small layer alone would do; ``settings`` are of the layers that can be fitted."""
    alone: dict[Operation, Replacement] = {}
    halves: dict[Operation, Replacement] = {}
    exact = LayerwiseExecution(held, threads)
    for operation, fit in settings.items():
        if operator_rules.weights(operation).size <= step_limits.MOST_SPARED_ELEMENTS:
            (rows,) = collect(operation, [exact.to(program, operator_rules.data(operation))], len(held), fit)
            found = fitted_codes(operation, rows, rows, math.inf, result.weights[operation], "corrected", fit)
            alone[operation] = (operation, found.numpy(), found.bias)
            if fits_float16(float_weights(operation)[0]):
                halves[operation] = (operation, *_half(operation))
    if alone:
        count = min(samples_weighed_on(program), step_limits.FEWEST_SYNTHETIC)
        _weigh(result, SensitivityAnalysis(program, lambda: iter(held), count, threads), alone, halves)


def _weigh(
    result: WeightOnlyCodes,
    analysis: SensitivityAnalysis,
    alone: Mapping[Operation, Replacement],
    halves: Mapping[Operation, Replacement],
) -> None:
    """Notes the noise of layers' codes, and of their float16 weights."""
    result.noise = {operation: analysis.of_weights(*replacement) for operation, replacement in alone.items()}
    result.float16_noise = {operation: analysis.of_weights(*made) for operation, made in halves.items()}


def _half(operation: Operation) -> tuple[Array, Array]:
    """A layer's weights as float16 holds them, and its bias, float64."""
    values, bias = float_weights(operation)
    return values.astype(np.float16).astype(np.float64), bias


def layer_statistics(program: Program, graphs: Sequence[Graph]) -> dict[Operation, ChannelStatistics]:
    """What training saw of layers' results, before their activation, where a batch norm is folded into them."""
    by_node: dict[str, ChannelStatistics] = {}
    activations: set[str] = set()
    for graph in graphs:
        by_node.update(trained_statistics(graph))
        activations.update(node.name for node in graph if node.op in (*ACTIVATION_OPS, *PASSES))
    found = {}
    layers = [operation for operation in program.operations if is_layer(operation)] if by_node else []
    uses = Counter(operation.nodes for operation in layers)  # several are parts of one, and their sum is normalized
    for operation in layers:
        if not is_reducible(operation) or uses[operation.nodes] > 1:
            continue
        last = next((name for name in reversed(operation.nodes) if name not in activations), "")
        if last in by_node and len(by_node[last].mean) == operation.outputs[0].shape[-1]:
            found[operation] = by_node[last]
    return found


def known_values(program: Program, observed: Collection[Operation]) -> set[Value]:
    """The tensors whose statistics follow from the layers that they are told of, or that are pictures."""
    known = {value for value in program.inputs if is_picture(value)}
    for operation in program.operations:
        moving = [value for value in operator_rules.float_operands(operation) if value.constant is None]
        if operation in observed or (moving and all(value in known for value in moving)):
            known.update(operation.outputs)
    return known


def _uses(program: Program) -> Counter[Value]:
    return Counter(operator_rules.weights(o) for o in program.operations if operator_rules.is_quantizable_layer(o))


def multiplies_codes(operation: Operation) -> bool:
    """Whether LiteRT is to quantize a layer's operand and multiply codes; else expanded weights are quicker."""
    return operation.code in HYBRID and int8_weights_pay(operation)


def _put(made: Operation, weights: QuantizedWeights, *, dynamic: bool) -> None:
    """Gives an operation of a copied program its codes, in place: as such where LiteRT computes with them."""
    kernel = operator_rules.weights(made)
    replace_weights(made, weights.numpy(), weights.bias)
    if dynamic and multiplies_codes(made):
        made.inputs[LINEAR[made.code][1]] = quantized_kernel(kernel.name, weights)
        if made.code == "FULLY_CONNECTED":
            made.options["asymmetric_inputs"] = True


def _match(made: Operation, rows: Array, wanted: ChannelStatistics, *, is_first: bool) -> Array:
    """Scales a layer so that its results, on these rows, have the mean and deviation that training saw, in place.

    Behind a first layer, whose inputs may be scaled in any way, one that would change much stays as it is: the averages
    of its batch norm had not settled, and say less than the made-up inputs.

    Returns:
        The factor of each channel.
    """
    values, _ = float_weights(made)
    with blas_threads.at_most(1):  # as where codes are fitted
        results = products(made, rows, values).astype(np.float64)
    mean, deviation = results.mean(axis=0), results.std(axis=0)
    factors: Array = np.minimum(wanted.deviation / np.maximum(deviation, 1e-12), STRONGEST)
    if not is_first and not 1 / SETTLED < np.median(factors) < SETTLED:
        return np.ones(1)
    replace_weights(made, values * _across(made, factors), wanted.mean - mean * factors)
    return factors


def _across(operation: Operation, channels: Array) -> Array:
    """One number for each output channel, shaped so that it goes with the weights."""
    shape = [1] * len(operator_rules.weights(operation).shape)
    shape[WEIGHT_AXIS[operation.code]] = len(channels)
    result: Array = channels.reshape(shape)
    return result


def wider_weights(codes: WeightOnlyCodes, *, dynamic: bool) -> dict[Operation, int]:
    """The small layers that get no codes, and the bits of their floats, 16 or 32.

    They are those where floats spare most noise, all together in little more bytes than a plain converter leaves in
    float. Where nothing is known of a layer's noise, it stays in float if it has few weights. With ``dynamic``, layers
    that LiteRT computes with codes stay in float only where they are little of the work.
    """
    of_nodes: Counter[Sequence[str]] = Counter()  # the parts of a window that is cut are one layer
    for nodes, value in {(o.nodes, operator_rules.weights(o)) for o in codes.weights}:
        of_nodes[nodes] += value.size
    few = [o for o in codes.weights if of_nodes[o.nodes] < step_limits.FEWEST_COMPRESSED_ELEMENTS]
    stored = {operator_rules.weights(o) for o in codes.weights}  # once, also where the steps of a loop share them
    room = step_limits.MOST_SPARED_BYTES_SHARE * sum(value.size for value in stored)
    room += sum(_stored_bytes(codes, o, 32) for o in few if o in codes.noise)
    room += sum(_stored_bytes(codes, o, 0) for o in codes.noise if o not in few)
    work = step_limits.MOST_SPARED_WORK_SHARE * step_limits.total_multiplications(codes.weights)
    forms = {o: _forms(codes, o) for o in codes.noise}
    for operation in forms:
        is_work = step_limits.multiplications(operation) > work and operation not in few
        if dynamic and is_work and multiplies_codes(operation):
            forms[operation] = {0: forms[operation][0]}
    found = least_noise(list(forms.values()), room)
    chosen = {o: 32 for o in few if o not in codes.noise}
    return chosen | {operation: bits for operation, bits in zip(forms, found, strict=True) if bits}


def _forms(codes: WeightOnlyCodes, operation: Operation) -> dict[int, tuple[float, float]]:
    """The bytes and the noise of a layer's weights as codes, 0, and as floats of 16 and of 32 bits."""
    noise = {0: codes.noise[operation], 16: codes.float16_noise.get(operation, math.inf), 32: 0.0}
    return {bits: (_stored_bytes(codes, operation, bits), loss) for bits, loss in noise.items() if math.isfinite(loss)}


def least_noise(forms: Sequence[Mapping[int, tuple[float, float]]], room: float) -> list[int]:
    """One form for each layer, so that all noise together is least in so many bytes: a knapsack.

    Args:
        forms: the bytes and the noise of each layer's forms.
        room: bytes; where the smallest forms take more, they are what is chosen.
    """
    smallest = [min(stored for stored, _ in layer.values()) for layer in forms]
    cell = max((room - sum(smallest)) / CELLS, 1.0)
    cells = max(int((room - sum(smallest)) / cell), 0) + 1
    least = np.zeros(cells)  # noise of the layers so far, by the cells that they may take
    taken = np.zeros((len(forms), cells), np.int64)
    for at, (layer, fewest) in enumerate(zip(forms, smallest, strict=True)):
        before, least = least, np.full(cells, np.inf)
        for bits, (stored, noise) in layer.items():
            used = math.ceil((stored - fewest) / cell)
            if used < cells:
                with_it = np.full(cells, np.inf)
                with_it[used:] = before[: cells - used] + noise
                taken[at, with_it < least] = bits
                least = np.minimum(least, with_it)
    chosen, left = [], cells - 1
    for at in reversed(range(len(forms))):
        bits = int(taken[at, left])
        chosen.append(bits)
        left -= math.ceil((forms[at][bits][0] - smallest[at]) / cell)
    return chosen[::-1]


def _stored_bytes(codes: WeightOnlyCodes, operation: Operation, bits: int) -> float:
    """What a layer's weights take in the file, about: as floats of 16 or 32 bits, or, with 0, as codes."""
    weights = codes.weights[operation]
    if bits:
        return weights.codes.size * bits / 8 + (BYTES_OF_EXPANSION if bits == 16 else 0)
    return weights.codes.size * weights.bits / 8 + 4 * len(weights.scales) + BYTES_OF_SCALES + BYTES_OF_EXPANSION
