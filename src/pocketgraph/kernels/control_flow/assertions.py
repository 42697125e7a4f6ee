"""What nodes wait for: assertions, and ops that do nothing."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import Context, kernel

kernel("NoOp", "ControlTrigger")(lambda: ())


@kernel("Assert")
def assert_(condition: Array, *data: Array, context: Context, summarize: int = 3) -> tuple[()]:
    """Nothing, when the condition holds.

    Raises:
        RunError: it does not; shows the first ``summarize`` elements of each data tensor.
    """
    if bool(np.all(condition)):
        return ()
    shown = " ".join(_summary(d, summarize) for d in data)
    raise RunError(f"assertion failed: {shown}", where=f"node '{context.node.name}'")


def _summary(values: Array, count: int) -> str:
    flat = np.asarray(values).ravel()
    count = flat.size if count < 0 else count
    shown = [v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in flat[:count].tolist()]
    return f"[{' '.join(shown)}{'...' if flat.size > count else ''}]"


@kernel("Abort")
def abort(*, context: Context, error_msg: str = "") -> tuple[()]:
    """Ends the run with an error, where the original ends the whole process.

    Raises:
        RunError: always.
    """
    raise RunError(f"Abort_op intentional failure; {error_msg}", where=f"node '{context.node.name}'")
