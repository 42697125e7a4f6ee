"""What the codes of a layer's weights and those of its operand do to its results, each by itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8, INT16
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import WEIGHTED
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.program_runner import ProgramRunner, Samples
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.program_pass import copied
from pocketgraph.runtime.comparison.answer_metrics import Likeness


def split_errors(
    outcome: QuantizationState,
    samples: Samples,
    most: int,
    threads: int = 1,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[Operation, dict[str, Likeness]]:
    """Measures both for every layer with coded weights, in one run of the float program a sample.

    Returns:
        A layer's results beside the float ones: "weights", with the weights' codes and the float operand; "operand",
        with the float weights and the operand's codes, where it has any.

    Args:
        outcome: what ``quantize`` gave.
        samples: inputs.
        most: how many samples at most.
        threads: how many threads to compute with.
        tell: how many samples are done.
    """
    probed = copied(outcome.program)
    outputs: list[Value] = []
    where: list[tuple[Operation, str]] = []
    for operation in outcome.program.operations:
        if operation not in outcome.weights or operation.code not in WEIGHTED:
            continue
        data, name = operator_rules.data(operation), operation.outputs[0].name
        probes = [("weights", _with_coded_weights(outcome, operation))]
        stand_in = outcome.converted.values.get(data)
        if stand_in is not None and stand_in.quantization is not None:
            dtype = INT16 if stand_in.dtype is INT16 else INT8
            coded = Value(f"{data.name}/probe", dtype, data.shape, None, stand_in.quantization)
            back = Value(f"{data.name}/probe/back", FLOAT, data.shape)
            probed.operations += [Operation("QUANTIZE", [data], [coded]), Operation("DEQUANTIZE", [coded], [back])]
            inputs = [back if value is data else value for value in operation.inputs]
            probes.append(("operand", Operation(operation.code, inputs, [], dict(operation.options))))
        outputs.append(operation.outputs[0])
        where.append((operation, ""))
        for kind, probe in probes:
            probe.outputs = [Value(f"{name}/{kind}", FLOAT, operation.outputs[0].shape)]
            probed.operations.append(probe)
            outputs.append(probe.outputs[0])
            where.append((operation, kind))
    found: dict[Operation, dict[str, Likeness]] = {}
    for operation, kind in where:
        if kind:
            found.setdefault(operation, {})[kind] = Likeness()
    if not found:
        return found
    running = ProgramRunner(probed, outputs, threads)
    for done, sample in enumerate(islice(samples(), most), 1):
        exact = None
        for (operation, kind), array in zip(where, running(sample), strict=True):
            if not kind:
                exact = array
            elif exact is not None:
                found[operation][kind].add(exact, array)
        tell(done)
    return found


def _with_coded_weights(outcome: QuantizationState, operation: Operation) -> Operation:
    """The float layer with the numbers that its codes stand for; the results are still to be set."""
    chosen = outcome.weights[operation]
    _, at_weights, at_bias = LINEAR[operation.code]
    inputs = list(operation.inputs) + [None] * (at_bias + 1 - len(operation.inputs))
    for at, array in ((at_weights, chosen.numpy()), (at_bias, chosen.bias)):
        constant = Constant.of(array.astype(np.float32))
        inputs[at] = Value(f"{operation.outputs[0].name}/probe/{at}", FLOAT, constant.shape, constant)
    return Operation(operation.code, inputs, [], dict(operation.options))
