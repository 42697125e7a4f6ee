"""What the codes of a layer's weights and those of its operand do to its results, each by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8, INT16
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import WEIGHTED
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.program_pass import copied


class Probe(NamedTuple):
    """A layer beside the float one.

    Attributes:
        operation: the float layer.
        kind: "weights" for one with the weights' codes and the float operand; "operand" for one with the float weights
            and the operand's codes.
    """

    operation: Operation
    kind: str


def with_probes(outcome: QuantizationState) -> tuple[Program, dict[Value, Probe]]:
    """The float program with both beside every layer with coded weights, the second where the operand has codes.

    Returns:
        The program, whose float tensors are the same, and the probes by their results.
    """
    plain = copied(outcome.program)
    probed = Program(plain.inputs, plain.outputs, [])
    found: dict[Value, Probe] = {}
    for operation, copy in zip(outcome.program.operations, plain.operations, strict=True):
        probed.operations.append(copy)
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
        for kind, probe in probes:
            probe.outputs = [Value(f"{name}/{kind}", FLOAT, operation.outputs[0].shape)]
            probed.operations.append(probe)
            found[probe.outputs[0]] = Probe(operation, kind)
    return probed, found


def _with_coded_weights(outcome: QuantizationState, operation: Operation) -> Operation:
    """The float layer with the numbers that its codes stand for; the results are still to be set."""
    chosen = outcome.weights[operation]
    _, at_weights, at_bias = LINEAR[operation.code]
    inputs = list(operation.inputs) + [None] * (at_bias + 1 - len(operation.inputs))
    numbers = Constant(lambda: chosen.numpy().astype(np.float32), chosen.codes.shape, np.dtype(np.float32))
    for at, constant in ((at_weights, numbers), (at_bias, Constant.of(chosen.bias.astype(np.float32)))):
        inputs[at] = Value(f"{operation.outputs[0].name}/probe/{at}", FLOAT, constant.shape, constant)
    return Operation(operation.code, inputs, [], dict(operation.options))
