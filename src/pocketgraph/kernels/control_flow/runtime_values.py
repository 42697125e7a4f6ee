"""What the runtime itself tells a graph or puts in place of something (the time, the device, unused results), and
assertions; the runtime itself runs Switch, Merge and their kin."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, nothing, reserve
from pocketgraph.kernels.registry import Context, kernel


@kernel("FakeParam")
def fake_param(*, dtype: DType, shape: Shape) -> Array:
    """In place of a result that nobody uses, in the branch that does not compute it: zeros, none along open axes."""
    sizes = [] if shape.dims is None else [size or 0 for size in shape.dims]
    return nothing(reserve(sizes, dtype.numpy), dtype.numpy)


@kernel("Timestamp")
def timestamp() -> Array:
    """Seconds since 1970."""
    return np.array(time.time())


@kernel("DeviceIndex")
def device_index(*, device_names: Sequence[str]) -> Array:
    """The place of the CPU among these names; their number when it is not there."""
    names = [str(name).upper() for name in device_names]
    return np.array(names.index("CPU") if "CPU" in names else len(names), np.int32)


@kernel("ToBool")
def to_bool(input: Array) -> Array:
    """As a branch asks: a number is not 0, a text not empty, a tensor has elements."""
    if input.ndim:
        return np.array(input.size > 0)
    return np.array(bool(input.item()) if input.dtype.kind != "O" else len(input.item()) > 0)


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
