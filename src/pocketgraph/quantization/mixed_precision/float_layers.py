"""Which operations go on computing in float for other reasons than the noise of their codes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.litert.operator_traits import HYBRID
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, is_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.mixed_precision.sensitivity import scores

LAST = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")


def last_normalizations(program: Program) -> list[Operation]:
    """The normalizations at the outputs: in float they lose nothing, and mostly cost next to nothing.

    A SOFTMAX that would be much of a program's time, as that of each place of a picture in a small network, is not
    among these: LiteRT looks the exponentials of codes up, which is faster for a few classes. Its results have steps of
    1/256, which for less than eight classes is noise at least 41 dB below them.
    """
    producers = program.producers()
    total = step_limits.total_multiplications(program.operations)
    found = []
    for output in program.outputs:
        before = producers.get(output)
        while before is not None and before.code == "RESHAPE" and before.inputs[0] is not None:
            before = producers.get(before.inputs[0])
        is_dear = before is not None and before.code == "SOFTMAX" and _is_dear(before.outputs[0].shape, total)
        if before is not None and before.code in LAST and not is_dear:
            found.append(before)
    return found


def wide_softmaxes(program: Program) -> list[Operation]:
    """The SOFTMAX operators of rows so wide that their int16 kernel is the slower one, and loses most.

    It takes all that lies more than 10 below the row's maximum for just 10 below it (``exp_lut`` of LiteRT's
    ``activations.cc``): each such number adds e^-10 to a row's sum, 256 of them 1 %.
    """
    softmaxes = (operation for operation in program.operations if operation.code == "SOFTMAX")
    return [each for each in softmaxes if each.outputs[0].shape[-1] >= step_limits.WIDE_NORMALIZED_ROW]


def _is_dear(shape: tuple[int, ...], total: int) -> bool:
    """Whether a SOFTMAX of this shape takes much of the time in float, and less in codes."""
    classes = max(shape[-1], 1)
    rows = math.prod(shape[:-1])
    is_narrow = classes < step_limits.WIDE_NORMALIZED_ROW
    work = step_limits.MULTIPLICATIONS_PER_NORMALIZED_ROW * rows
    return is_narrow and rows > step_limits.FEW_NORMALIZED_ROWS and work > step_limits.DEAR_TIME_SHARE * total


def preparation(program: Program, bits: int = 8) -> list[Operation]:
    """What is computed from the inputs before the first layer with weights.

    There, numbers of any unit come in side by side, which one scale cannot hold, and there is next to nothing to gain.
    Empty where it is work that eight bits make quicker, as sixteen never do, or where data are only moved about.
    """
    behind: set[Value] = set()
    found = []
    for operation in program.operations:
        if is_layer(operation) or any(value in behind for value in operation.inputs):
            behind.update(operation.outputs)
        else:
            found.append(operation)
    computes = any(OPERATOR_RULES.get(operation.code) is not OperatorRule.SAME for operation in found)
    total = step_limits.total_multiplications(program.operations)
    is_little = step_limits.total_multiplications(found) <= step_limits.PREPARATION_WORK_SHARE * total
    return found if computes and (is_little or bits == 16) else []


def float_ends(
    program: Program, coded: Sequence[Operation], sensitivity: Mapping[Value, float], keep: Collection[Operation]
) -> list[Operation]:
    """Last layers that compute with eight-bit weights and a quantized operand, but give their results in float.

    The scores of samples not seen reach farther than those seen, and codes would cut off just what decides. Where there
    is one row of scores it costs nothing; where there are many, it is done when their codes would make more noise than
    everything else together. What is computed of such a row in float, as its length is taken off an embedding, does not
    make it another one.
    """
    ends = set(scores(program))
    one_row = ends | _before_floats(program, set(coded))
    layers = [operation for operation in coded if is_layer(operation)]
    total = sum(sensitivity.values())
    found = []
    for operation in layers:
        value = operation.outputs[0]
        if operation.code not in HYBRID or operation in keep:
            continue
        is_few = value in ends and value.size <= step_limits.MOST_FLOAT_SCORES
        is_loud = is_few and sensitivity.get(value, 0.0) > total / 2
        is_one_row = value in one_row and value.size == value.shape[-1] and len(layers) > 1
        if is_loud or is_one_row:
            found.append(operation)
    return found


def _before_floats(program: Program, coded: Collection[Operation]) -> set[Value]:
    """Results of layers that are read in float alone, and that lead to an output by operations in float alone.

    On other ways behind such an operation there may be codes: what it gives is rounded to them there.
    """
    producers, readers = program.producers(), program.consumers()
    waiting, found, seen = list(program.outputs), set[Value](), set[Value]()
    while waiting:
        value = waiting.pop()
        before = producers.get(value)
        if before is None or value in seen:
            continue
        seen.add(value)
        if is_layer(before) and not any(reader in coded for reader in readers.get(value, [])):
            found.add(value)
        elif not is_layer(before) and before not in coded:
            waiting += [operand for operand in before.inputs if operand is not None]
    return found


def named(program: Program, names: Sequence[str]) -> list[Operation]:
    """The operations that make the tensors or compute the nodes of these names.

    Raises:
        UsageError: there is no such tensor or node.
    """
    by_name: dict[str, Operation] = {}
    for operation in program.operations:
        for name in (*operation.nodes, *(value.name for value in operation.outputs)):
            by_name[name] = operation
    found = []
    for name in names:
        named_so = by_name.get(name) or by_name.get(f"{name}:0")  # of a node that is gone, its result may be left
        if named_so is None:
            raise UsageError(f"{option('keep')}: the model has no layer '{name}'", hint=did_you_mean(name, by_name))
        found.append(named_so)
    return found


def keep_named(state: QuantizationState) -> bool:
    """The step: layers that the caller names stay in float."""
    state.kept += named(state.program, state.options.keep)
    return bool(state.kept)


def keep_normalizations(state: QuantizationState) -> bool:
    """The step."""
    wide = wide_softmaxes(state.program) if state.options.bits == 16 else []
    return state.stay_in_float([*last_normalizations(state.program), *wide])


def keep_preparation(state: QuantizationState) -> bool:
    """The step."""
    return state.stay_in_float(preparation(state.program, state.options.bits))


def choose_float_scores(state: QuantizationState) -> bool:
    """The step: last layers that are to give their results in float, if they have codes at all."""
    found = float_ends(state.program, state.coded, state.sensitivity, [*state.kept, *state.in_float])
    state.float_scores = {operation.outputs[0] for operation in found}
    state.sensitivity = {value: n for value, n in state.sensitivity.items() if value not in state.float_scores}
    return bool(found)


def use_float_scores(state: QuantizationState) -> bool:
    """The step: those layers become hybrid ones, as far as nothing since has left them in float altogether."""
    found = [operation for operation in state.coded if operation.outputs[0] in state.float_scores]
    if found:
        names = ", ".join(operation.outputs[0].name for operation in found)
        state.notes.append(
            f"{names}: results in float, so that no score is cut off or rounded; weights and operand are in eight "
            "bits all the same"
        )
        state.hybrid = [*found, *state.hybrid]
    return bool(found)
