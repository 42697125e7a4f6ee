"""What is wrong with a model or with samples before anything is quantized: refused, or warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantize import operators
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.running import Samples

FEW = 10  # samples; with fewer of them, other inputs are sure to reach further
LOOKED_AT = 16  # samples that are held against each other


def check_weights(program: Program) -> None:
    """Refuses weights that no code stands for.

    Raises:
        RunError: weights or a bias hold NaN or infinity.
    """
    for operation in program.operations:
        if operators.KINDS.get(operation.code) is not operators.Kind.WEIGHTED:
            continue
        if not operators.can_quantize(operation):
            continue
        for value in (operators.weights(operation), operators.bias(operation)):
            if value is not None and value.constant is not None and not np.isfinite(value.constant.numpy()).all():
                raise RunError(
                    "its weights hold NaN or infinity: the model is damaged",
                    where=operation.outputs[0].name,
                    hint="train it again, or freeze an earlier checkpoint",
                )


def warnings(program: Program, seen: Mapping[Value, Observation], samples: Samples, count: int) -> Iterator[str]:
    """What makes the samples unlike those of the real use, a sentence each.

    Args:
        program: what ran on the samples.
        seen: what values its tensors took.
        samples, count: what it ran on.
    """
    hollow = [found for value in program.inputs if (found := seen.get(value)) and found.low == found.high]
    for found in hollow:
        yield (
            f"warning: all samples hold nothing but {found.low:g} for '{found.name}', so that the ranges found are not "
            "those of real inputs; give samples like those of the real use"
        )
    if count < FEW:
        yield (
            f"warning: only {count} sample{'s' if count > 1 else ''} to calibrate with: other inputs will reach "
            "further than these ranges; about 100 do"
        )
    elif not hollow and are_all_the_same(samples):
        yield f"warning: the first {min(count, LOOKED_AT)} samples are all the same; give samples that differ"


def are_all_the_same(samples: Samples) -> bool:
    """Whether the first few samples do not differ."""
    first = None
    for sample in islice(samples(), LOOKED_AT):
        if first is None:
            first = [np.array(array) for array in sample]
        elif not all(np.array_equal(a, b) for a, b in zip(first, sample, strict=True)):
            return False
    return True
