"""What has to be known of a program beside its model file: what enters and leaves, and what LiteRT does not pass on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pocketgraph.litert.cost_model import LIGHT_OPERATION
from pocketgraph.litert.executable import encoded
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.deduplication import bytes_repeated


def split(
    program: Program, inputs: Sequence[str], types: Sequence[str], *, keep_shapes: bool = False
) -> tuple[dict[str, Any], Program]:
    """What must be known beside the model file, and the program of what is really computed.

    LiteRT does not pass inputs or constants straight through, so those are seen to here; nor, unless their shapes are
    to be kept, last reshapes.
    """
    places: dict[Value, tuple[str, int]] = {value: ("input", place) for place, value in enumerate(program.inputs)}
    given_out = Counter(program.outputs)
    computed = [value for value in given_out if value.constant is None and value not in places]
    constants = [value for value in given_out if value.constant is not None]
    for kind, values in (("computed", computed), ("constant", constants)):
        places.update((value, (kind, place)) for place, value in enumerate(values))
    read = program.uses()
    fed = [index for index, value in enumerate(program.inputs) if read[value] > given_out[value]]
    given = computed if keep_shapes else _unshaped(program, computed)
    model = Program([program.inputs[index] for index in fed], given, program.operations)
    model.drop_unused()
    size = sum(value.constant.nbytes for value in _constants(model))
    work = model.work  # of light operations, handing work to a second thread takes longer than doing it
    about = {
        "inputs": [(name, type, value.shape) for name, type, value in zip(inputs, types, program.inputs, strict=True)],
        "computed": [(value.shape, value.dtype.numpy.name) for value in computed],
        "sources": [places[value] for value in program.outputs],
        "fed": fed,
        "constants": [
            (encoded(value.constant.numpy()), value.dtype.numpy.name, value.shape)
            for value in constants
            if value.constant is not None
        ],
        "operations": len(model.operations),
        "bytes": size,
        "repeated": bytes_repeated(model),
        "by_several": program.by_several,
        "one_thread": work < LIGHT_OPERATION * len(model.operations),
        "work": work,
        "eight_bit": any(value.quantization is not None for each in model.operations for value in each.outputs),
        "rounded": {str(place): dtype.numpy.name for place, dtype in program.rounded.items()},
    }
    return about, model


def _unshaped(program: Program, computed: Sequence[Value]) -> list[Value]:
    """What LiteRT gives in the place of these values: the same elements before a last reshape, which would copy them.

    Whoever runs the model gives them the shapes that are wanted.
    """
    producers, read = program.producers(), program.uses()
    given: list[Value] = []
    taken = set(computed)
    for value in computed:
        last = producers[value]
        source = last.inputs[0] if last.code == "RESHAPE" and read[value] == 1 else None
        is_free = source is not None and source in producers and source not in taken
        given.append(source if source is not None and is_free else value)
        taken.add(given[-1])
    return given


def _constants(program: Program) -> list[Any]:
    found = (value for operation in program.operations for value in operation.inputs if value is not None)
    return [value for value in dict.fromkeys(found) if value.constant is not None]
