"""The sequences that a beam search found, read from its last step back along each beam's parents."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, number
from pocketgraph.kernels.registry import kernel


@kernel("GatherTree", "Addons>GatherTree")
def gather_tree(step_ids: Array, parent_ids: Array, max_sequence_lengths: Array, end_token: Array) -> Array:
    """int32 (steps, batch, beams): each beam's whole sequence; after its end, and after its longest length, end tokens.

    Args:
        step_ids: int32 (steps, batch, beams): what each beam added in each step.
        parent_ids: of the same shape: which beam of the step before it went on from.
        max_sequence_lengths: int32 (batch,): steps to look at.
        end_token: int32, one number.

    Raises:
        RunError: shapes that do not fit, or a parent that is no beam.
    """
    if step_ids.ndim != 3 or parent_ids.shape != step_ids.shape:
        raise RunError(
            "step_ids and parent_ids must be a 3-tensor of one shape, "
            f"not {list(step_ids.shape)} and {list(parent_ids.shape)}"
        )
    steps, batch, beams = step_ids.shape
    if max_sequence_lengths.shape != (batch,):
        raise RunError(f"max_sequence_lengths must have shape [{batch}], not {list(max_sequence_lengths.shape)}")
    end = step_ids.dtype.type(number(end_token))
    found = np.full(step_ids.shape, end, step_ids.dtype)
    lengths = np.minimum(max_sequence_lengths, steps)
    rows = np.arange(batch)[:, None]
    follows = np.broadcast_to(np.arange(beams), (batch, beams)).copy()  # the beam to read, where it has begun
    for step in range(int(lengths.max(initial=0)) - 1, -1, -1):
        begun = step < lengths
        parents = parent_ids[step][rows, follows]
        found[step, begun] = step_ids[step][rows, follows][begun]
        if step and begun.any():
            given = parents[begun]
            if given.min() < 0 or given.max() >= beams:
                wrong = given[(given < 0) | (given >= beams)][0]
                raise RunError(f"the parent {wrong} in step {step} is none of {beams} beams")
            follows[begun] = given
    ended = np.logical_or.accumulate(found == end, axis=0)
    found[ended] = end
    return found
