"""Variables: made, read and assigned, both the reference kind of TF1 and the resource kind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.dtype import VARIANT
from pocketgraph.kernels.arrays import Array, integer, kept, kept_nan, nothing
from pocketgraph.kernels.math.arithmetic import truncated_quotient
from pocketgraph.kernels.registry import Context, Value, evaluate, kernel


class Variable:
    """A value that outlives a run.

    Attributes:
        name: the variable's name, for errors.
        dtype: its element type.
        lock: held by ops that read and then write.
        changes: how often a value was assigned or forgotten.
        on_change: called after each of these, while it is set.
    """

    __slots__ = ("_value", "changes", "dtype", "lock", "name", "on_change", "resource")

    def __init__(self, name: str, dtype: DType | None = None, *, resource: bool = False) -> None:
        self.name = name
        self.dtype = dtype
        self.resource = resource
        self.lock = threading.RLock()
        self.changes = 0
        self.on_change: Callable[[], None] | None = None
        self._value: Array | None = None

    @property
    def is_initialized(self) -> bool:
        return self._present() is not None

    @property
    def settled(self) -> Array | None:
        """The value that was assigned once and is not being changed. Waits for nobody: who changes it may wait for who
        asks."""
        return self._value if self.changes == 1 else None

    def _present(self) -> Array | None:
        """The value; where it was taken out to be changed, the one that follows."""
        value = self._value
        if value is None:
            with self.lock:
                value = self._value
        return value

    def read(self) -> Array:
        """The present value; a later assignment does not change the array given back.

        Raises:
            RunError: nothing was assigned yet.
        """
        value = self._present()
        if value is None:
            said = (
                f"Error while reading resource variable {self.name} from Container: localhost. "
                "This could mean that the variable was uninitialized"
                if self.resource
                else f"Attempting to use uninitialized value {self.name}"
            )
            raise RunError(said, hint="run the graph's init target first, or freeze the graph with its checkpoint")
        return value

    def assign(self, value: Any) -> None:
        """Takes ``value`` as the new value, and a copy where somebody could still write to it."""
        self._change(kept(value) if self.dtype is VARIANT else kept(np.asarray(value)))

    def keep(self, value: Array) -> None:
        """Takes an array that nobody else has as the new value."""
        value.flags.writeable = False
        self._change(value)

    def taken(self) -> Array:
        """Takes the value out to be changed, which the caller ends by ``keep``; to be called with the lock held.

        Returns:
            An array in one piece with the value, which can be written to: a copy where somebody else has the value.
        """
        value = self.read()
        self._value = None  # before references are counted: nobody can come to have it afterwards
        if sys.getrefcount(value) == _ALONE and value.flags.owndata and value.flags.c_contiguous:
            value.flags.writeable = True
            return value
        try:
            return np.array(value, order="C")
        except MemoryError:
            self._value = value
            raise

    def forget(self) -> None:
        """Makes it uninitialized again."""
        self._change(None)

    def _change(self, value: Array | None) -> None:
        self._value = value
        self.changes += 1
        if self.on_change is not None:
            self.on_change()


def _references() -> int:
    value = np.empty(0)
    return sys.getrefcount(value)


_ALONE = _references()
"""What Python counts in ``Variable.taken`` where only the variable had the array."""


def variable_key(container: str, name: str) -> str:
    """Where a session keeps the variable of this name, which is its shared name or else its node's."""
    return f"variable {container}/{name}"


def variable_of(
    node: Node, context: Context, dtype: DType, shared_name: str, container: str, *, resource: bool
) -> Variable:
    """The session's variable for this node: ops that give the same shared name share it."""
    key = variable_key(container, shared_name or node.name)
    found = context.state.get(key)
    if found is None:
        found = context.state.setdefault(key, Variable(shared_name or node.name, dtype.base, resource=resource))
    assert isinstance(found, Variable)
    return found


@kernel("Variable", "VariableV2")
def variable(*, dtype: DType, container: str = "", shared_name: str = "", context: Context) -> Variable:
    return variable_of(context.node, context, dtype, shared_name, container, resource=False)


@kernel("VarHandleOp")
def var_handle(*, dtype: DType, container: str = "", shared_name: str = "", context: Context) -> Variable:
    return variable_of(context.node, context, dtype, shared_name, container, resource=True)


@kernel("TemporaryVariable")
def temporary_variable(*, shape: Shape, dtype: DType, var_name: str = "", context: Context) -> Variable:
    key = f"temporary {var_name or context.node.name}"
    found = context.step[key] = Variable(var_name or context.node.name, dtype.base)
    if shape.is_known:
        found.assign(nothing(shape.known, dtype.base.numpy))
    return found


@kernel("DestroyTemporaryVariable")
def destroy_temporary_variable(ref: Variable, *, var_name: str, context: Context) -> Array:
    context.step.pop(f"temporary {var_name}", None)
    return ref.read()


kernel("RefIdentity")(lambda input: input)


@kernel("RefSelect")
def ref_select(index: Array, *inputs: Variable) -> Variable:
    """The one of ``inputs`` that ``index`` names, still a reference."""
    chosen = integer(index)
    if not 0 <= chosen < len(inputs):
        raise ValueError(f"Index must be in the range [0, {len(inputs)}) but got {chosen}")
    return inputs[chosen]


kernel("IsVariableInitialized")(lambda ref: np.asarray(isinstance(ref, np.ndarray) or ref.is_initialized))  # if frozen
kernel("VarIsInitializedOp")(lambda resource: np.asarray(resource.is_initialized))
kernel("ReadVariableOp")(lambda resource: resource.read())


@kernel("VariableShape")
def variable_shape(input: Variable, *, out_type: DType | None = None) -> Array:
    return np.asarray(input.read().shape, np.int32 if out_type is None else out_type.numpy)


@kernel("DestroyResourceOp")
def destroy_resource(resource: Any) -> tuple[()]:
    if isinstance(resource, Variable):
        resource.forget()
    return ()


@kernel("Assign")
def assign(ref: Variable, value: Array, *, validate_shape: bool = True) -> Variable:
    if validate_shape and ref.is_initialized and ref.read().shape != value.shape:
        raise RunError(
            "Assign requires shapes of both tensors to match. "
            f"lhs shape= {list(ref.read().shape)} rhs shape= {list(value.shape)}",
            where=f"variable '{ref.name}'",
        )
    ref.assign(value)
    return ref


@kernel("AssignVariableOp")
def assign_variable(resource: Variable, value: Array) -> tuple[()]:
    resource.assign(value)
    return ()


def change(variable: Variable, by: Callable[[Array], Array]) -> Variable:
    """Replaces the value by a function of it, with nobody else changing it in between.

    Raises:
        RunError: the variable has no value, or the function changes its shape.
    """
    with variable.lock:
        before = variable.read()
        made, owners = _made(by, before)
        after = np.asarray(made, before.dtype)
        if after.shape != before.shape:
            raise RunError(
                f"an update of shape {list(after.shape)} does not fit the value's shape {list(before.shape)}",
                where=f"variable '{variable.name}'",
            )
        if after is made and owners == _ONE_OWNER and after.base is None:
            variable.keep(after)
        else:
            variable.assign(after)
    return variable


def _made(by: Callable[[Any], Any], before: Any) -> tuple[Any, int]:
    """What a function makes of a value, and how many references to it Python counts."""
    made = by(before)
    return made, sys.getrefcount(made)


_ONE_OWNER = _made(lambda _: np.empty(0), None)[1]
"""What Python counts where only ``_made`` knows an array."""


def _register_assign(name: str, how: np.ufunc) -> None:
    @kernel(f"Assign{name}")
    def assign_by(ref: Variable, value: Array) -> Variable:
        return change(ref, lambda now: how(now, value))

    @kernel(f"Assign{name}VariableOp")
    def assign_variable_by(resource: Variable, value: Array) -> tuple[()]:
        change(resource, lambda now: how(now, value))
        return ()


_register_assign("Add", np.add)
_register_assign("Sub", np.subtract)


@kernel("CountUpTo")
def count_up_to(ref: Variable, *, limit: int) -> Array:
    with ref.lock:
        before = ref.read()
        if before >= limit:
            raise RunError(f"Reached limit of {limit}", where=f"variable '{ref.name}'")
        ref.assign(before + before.dtype.type(1))
    return before


@kernel("ResourceCountUpTo")
def resource_count_up_to(resource: Variable, *, limit: int) -> Array:
    return count_up_to(resource, limit=limit)


@kernel("ResourceGatherNd")
def resource_gather_nd(resource: Variable, indices: Array) -> Array:
    from pocketgraph.kernels.array.gather_scatter import gather_nd

    return gather_nd(resource.read(), indices)


@kernel("ResourceGather")
def resource_gather(resource: Variable, indices: Array, *, batch_dims: int = 0) -> Array:
    node = Node("gather", "GatherV2", (), {"batch_dims": batch_dims})
    (taken,) = evaluate(node, (resource.read(), indices, np.asarray(batch_dims, np.int32)))
    return np.asarray(taken)


def _scattered(now: Array, indices: Array, updates: Array, how: Callable[..., Any]) -> Array:
    """``now`` with rows changed by ``how`` (a ufunc, or None to replace them); later rows win."""
    flat = np.asarray(indices).reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= now.shape[0]):
        raise RunError(f"indices reach from {flat.min()} to {flat.max()}, the variable has {now.shape[0]} rows")
    wanted = indices.shape + now.shape[1:]
    if updates.ndim and updates.shape != wanted:
        raise RunError(f"updates of shape {list(updates.shape)} where {list(wanted)}, or a scalar, is wanted")
    rows = np.broadcast_to(updates, wanted).reshape((flat.size, *now.shape[1:]))
    after: Array = now.copy()
    how(after, flat, rows)
    return after


def _put(target: Array, rows: Array, values: Array) -> None:
    target[rows] = values


def _divide(target: Array, rows: Array, values: Array) -> None:
    """Integers are divided as integers, towards zero."""
    if target.dtype.kind not in "iu":
        np.divide.at(target, rows, values)
        return
    for row, value in zip(rows.tolist(), values, strict=True):
        target[row] = truncated_quotient(target[row : row + 1], value[None])[0]


def _extreme(choose: np.ufunc) -> Callable[..., None]:
    def extreme(target: Array, rows: Array, values: Array) -> None:
        held = target.copy()
        choose.at(target, rows, values)
        target[...] = kept_nan(held, target)

    return extreme


_SCATTER: dict[str, Callable[..., Any]] = {
    "Update": _put,
    "Add": np.add.at,
    "Sub": np.subtract.at,
    "Mul": np.multiply.at,
    "Div": _divide,
    "Min": _extreme(np.fmin),
    "Max": _extreme(np.fmax),
}


def _register_scatter(name: str, how: Callable[..., Any]) -> None:
    @kernel(f"Scatter{name}")
    def scatter(ref: Variable, indices: Array, updates: Array) -> Variable:
        return change(ref, lambda now: _scattered(now, indices, updates, how))

    @kernel(f"ResourceScatter{name}")
    def resource_scatter(resource: Variable, indices: Array, updates: Array) -> tuple[()]:
        if how is _divide and updates.size and not np.all(updates):
            raise RunError("updates must not contain 0")
        change(resource, lambda now: _scattered(now, indices, updates, how))
        return ()


for _name, _how in _SCATTER.items():
    _register_scatter(_name, _how)


@kernel("DisableCopyOnRead")
def disable_copy_on_read(resource: Value) -> tuple[()]:
    """Nothing: a variable's value that was read does not change here anyway."""
    return ()
