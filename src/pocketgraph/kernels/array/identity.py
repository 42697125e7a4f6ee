"""Ops that hand their input on, some after a check: constants, identities, gates, assertions."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape, Tensor
from pocketgraph.kernels.arrays import Array, is_float, widened
from pocketgraph.kernels.registry import Context, Value, kernel


@kernel("Const", "HostConst")
def const(*, value: Tensor) -> Array:
    return value.numpy()


@kernel(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault", "DeepCopy",
    "DebugGradientIdentity", "Copy", "CopyHost", "GuaranteeConst",
)  # fmt: skip
def identity(input: Value) -> Value:
    return input


@kernel("IdentityN")
def identity_n(*input: Value) -> tuple[Value, ...]:
    return input


@kernel("NoOp", "ControlTrigger")
def no_op() -> tuple[()]:
    return ()


@kernel("EnsureShape")
def ensure_shape(input: Array, *, shape: Shape) -> Array:
    if not shape.fits(input.shape):
        raise ValueError(f"Shape of tensor {list(input.shape)} is not compatible with expected shape {shape}")
    return input


@kernel("CheckNumerics", "CheckNumericsV2")
def check_numerics(tensor: Array, *, message: str) -> Array:
    """The tensor, when all of it is finite.

    Raises:
        RunError: it holds an infinity or NaN; begins with the node's own message.
    """
    if is_float(tensor.dtype):
        wide = widened(tensor)
        found = [name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if bool(test(wide).any())]
        if found:
            raise RunError(f"{message} : Tensor had {' and '.join(found)} values")
    return tensor


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
def abort(*, context: Context, error_msg: str = "", exit_without_error: bool = False) -> tuple[()]:
    """Ends the run with an error, where the original ends the whole process.

    Raises:
        RunError: always.
    """
    raise RunError(f"Abort_op intentional failure; {error_msg}", where=f"node '{context.node.name}'")


@kernel("_ListToArray", "_ArrayToList")
def list_to_array(*input: Value) -> tuple[Value, ...]:
    return input


@kernel("ImmutableConst")
def immutable_const(*, dtype: DType, shape: Shape, memory_region_name: str) -> Array:
    """A constant that lies in a region of a memory-mapped package; only a reader of such a package can supply it."""
    raise RunError(
        f"the region '{memory_region_name}' is not loaded", hint="load the memory-mapped package that holds this graph"
    )
