"""Ops that hand their input on, some after a check: constants, identities, gates."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Shape, Tensor
from pocketgraph.kernels.arrays import Array, is_float, widened
from pocketgraph.kernels.registry import Value, kernel


@kernel("Const", "HostConst")
def const(*, value: Tensor) -> Array:
    return value.numpy()


@kernel(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault", "DeepCopy",
    "DebugGradientIdentity", "Copy", "CopyHost", "GuaranteeConst", "XlaSharding", "XlaClusterOutput",
)  # fmt: skip
def identity(input: Value) -> Value:
    return input


kernel("IdentityN", "XlaOptimizationBarrier")(lambda *input: input)


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


kernel("_ListToArray", "_ArrayToList")(lambda *input: input)


@kernel("ImmutableConst")
def immutable_const(*, memory_region_name: str) -> Array:
    """A constant that lies in a region of a memory-mapped package; only a reader of such a package can supply it."""
    raise RunError(
        f"the region '{memory_region_name}' is not loaded", hint="load the memory-mapped package that holds this graph"
    )
