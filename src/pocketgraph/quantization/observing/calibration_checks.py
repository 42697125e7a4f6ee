"""What is wrong with a model or with samples before anything is quantized: refused, or warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert.program import Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_state import QuantizationState


def check_weights(program: Program) -> None:
    """Refuses weights that no code stands for.

    Raises:
        RunError: weights or a bias hold NaN or infinity.
    """
    for operation in (operation for each in program.programs() for operation in each.operations):
        if not operator_rules.is_quantizable_layer(operation):
            continue
        for value in (operator_rules.weights(operation), operator_rules.bias(operation)):
            if value is not None and value.constant is not None and not np.isfinite(value.constant.numpy()).all():
                raise RunError(
                    "its weights hold NaN or infinity: the model is damaged",
                    where=operation.outputs[0].name,
                    hint="train it again, or freeze an earlier checkpoint",
                )


def check(state: QuantizationState) -> bool:
    """The step."""
    check_weights(state.program)
    return False


def warnings(program: Program, seen: Mapping[Value, Observation], samples: Samples, count: int) -> Iterator[str]:
    """What makes the samples unlike those of the real use, or the model's answers no proof, a sentence each."""
    hollow = [found for value in program.inputs if (found := seen.get(value)) and found.low == found.high]
    for found in hollow:
        yield (
            f"warning: all samples hold nothing but {found.low:g} for '{found.name}', so that the ranges found are not "
            "those of real inputs; give samples like those of the real use"
        )
    still = [found for value in program.outputs if (found := seen.get(value)) and found.low == found.high]
    for found in still if not hollow else ():
        yield (
            f"warning: '{found.name}' is {found.low:g} for all samples, so that nothing shows what eight bits lose "
            "there; was the model trained, and are the samples like those of the real use"
        )
    if count < step_limits.FEWEST_SAMPLES:
        yield (
            f"warning: only {counted(count, 'sample')} to calibrate with: other inputs will reach "
            "further than these ranges; about 100 do"
        )
    elif not hollow and are_all_the_same(samples):
        first = min(count, step_limits.SAMPLES_COMPARED)
        yield f"warning: the first {first} samples are all the same; give samples that differ"


def are_all_the_same(samples: Samples) -> bool:
    """Whether the first few samples do not differ."""
    first = None
    for sample in islice(samples(), step_limits.SAMPLES_COMPARED):
        if first is None:
            first = [np.array(array) for array in sample]
        elif not all(np.array_equal(a, b) for a, b in zip(first, sample, strict=True)):
            return False
    return True
