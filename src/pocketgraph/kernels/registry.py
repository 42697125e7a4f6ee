"""The table of what each op computes: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pocketgraph.errors import MissingKernelError, PocketgraphError, RunError
from pocketgraph.graph import Node
from pocketgraph.kernels.op_table import OpTable
from pocketgraph.kernels.ranks import checked

CO_VARARGS = 0x04  # of inspect, whose import takes long: a function takes ``*values``
R = TypeVar("R")
AT_END = "at the end"
"""Where a run's values have what is to be called when it ends (see ``Context.at_end``)."""
Value = Any
"""What flows along an edge: an ndarray (strings: an object array of bytes) or a handle such as a TensorArray's."""


class Context:
    """What a kernel may need beyond its inputs; kernels that declare a ``context`` parameter are given it.

    Attributes:
        node: the node being run.
        state: values that live as long as the session (variables, tables, queues), by resource name.
        step: values that live for one run (TensorArrays, stacks).
        rng: the session's random generator.
        files: the files that the graph may reach (see saving.Files); None when it may reach none.
        caller: the calls of functions that the node runs in, ``CALL/FUNCTION/`` each; "" outside of functions.
    """

    def __init__(
        self,
        node: Node,
        state: dict[str, Any] | None = None,
        step: dict[str, Any] | None = None,
        rng: np.random.Generator | None = None,
        files: Any = None,
        caller: str = "",
    ) -> None:
        self.node = node
        self.state: dict[str, Any] = {} if state is None else state
        self.step: dict[str, Any] = {} if step is None else step
        self.rng = rng
        self.files = files
        self.caller = caller

    @property
    def instance(self) -> str:
        """The node in this call of its function: what a kernel keeps for itself from run to run goes by this name."""
        return f"{self.caller}{self.node.name}"

    def at_end(self, call: Callable[[], object]) -> None:
        """Has something called when the run has ended, whatever ended it."""
        self.step.setdefault(AT_END, []).append(call)

    def shared(self, kind: str, name: str, make: Callable[[str], R]) -> R:
        """The session's resource of this kind and name; it is made when it is asked for first.

        Args:
            kind: of all that is found under the same names.
            name: by which nodes share it; "" for one that goes by the node's own name.
            make: makes it, given its name. Of two threads that ask at once both are given the same.
        """
        name = name or self.node.name
        place = f"{kind}/{name}"
        found: R | None = self.state.get(place)
        return self.state.setdefault(place, make(name)) if found is None else found


Signature = tuple[tuple[str, ...], Mapping[str, Any], bool]
"""The attributes that a kernel takes, the defaults of those that have one, and whether it takes ``context``."""


class Kernel:
    """One op's implementation. A module of kernels is imported for a few of them: what is to be known of one is found
    when it is asked for.

    Args:
        op: the op type.
        computes: takes the data inputs positionally and attributes as keywords; gives back an array or a tuple.
        signature: as the function has it, by default.

    Attributes:
        op: the op type.
    """

    def __init__(self, op: str, computes: Callable[..., Any], signature: Signature | None = None) -> None:
        self.op = op
        self._computes = computes
        self._given = signature

    @cached_property
    def function(self) -> Callable[..., Any]:
        """What computes it, and refuses inputs of wrong ranks."""
        return checked(self.op, self._computes)

    @cached_property
    def _signature(self) -> Signature:
        return signature_of(self._computes) if self._given is None else self._given

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        """The attribute names that the function takes."""
        return self._signature[0]

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The values of those it can do without."""
        return self._signature[1]

    @cached_property
    def takes_context(self) -> bool:
        """Whether it also takes ``context``."""
        return self._signature[2]

    @cached_property
    def is_variadic(self) -> bool:
        """Whether it takes any number of inputs, which its op need not; False where a signature is given."""
        if self._given is not None:
            return False
        code = getattr(getattr(self._computes, "__wrapped__", self._computes), "__code__", None)
        return code is None or bool(code.co_flags & CO_VARARGS)


KERNELS: OpTable[Kernel] = OpTable("kernel", "pocketgraph.kernels", "KERNELS")
"""What computes each op."""

F = TypeVar("F", bound=Callable[..., Any])


def kernel(*ops: str) -> Callable[[F], F]:
    """Registers a function as what these ops compute.

    Its positional parameters are the op's data inputs in order (``*values`` for a list), its keyword-only parameters
    the op's attributes under their own names with the op's own defaults. String attributes arrive as ``str`` and
    lists as tuples; types as DType, tensors as Tensor. It returns one array, or a tuple with one entry an output.
    Whoever calls it switches NumPy's warnings off: ``evaluate`` for one node, an engine for all of a run.
    """

    def register(function: F) -> F:
        for op in ops:
            KERNELS.add(op, Kernel(op, function))
        return function

    return register


def signature_of(function: Callable[..., Any]) -> Signature:
    """The attributes that a kernel takes, the defaults of those that have one, and whether it takes ``context``.

    Of a plain function they are read where Python keeps them: a session that starts registers hundreds of kernels, and
    ``inspect.signature`` would take as long as importing them.
    """
    while hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__signature__"):
        import inspect

        parameters = inspect.signature(function).parameters.values()
        given = {p.name: p.default for p in parameters if p.default is not p.empty}
        attrs = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "context")
        takes_context = any(p.name == "context" for p in parameters)
        return attrs, {name: given[name] for name in attrs if name in given}, takes_context
    positional, count = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    attrs = tuple(name for name in code.co_varnames[positional:count] if name != "context")
    given = function.__kwdefaults__ or {}
    return attrs, {name: given[name] for name in attrs if name in given}, "context" in code.co_varnames[:count]


def arguments(kernel: Kernel, node: Node) -> dict[str, Any]:
    """The keyword arguments that ``kernel`` takes from ``node``: its attributes, missing ones by the op's default.

    Raises:
        RunError: an attribute without default is missing.
    """
    chosen: dict[str, Any] = {}
    for name in kernel.attrs:
        if name in node.attrs:
            chosen[name] = plain(node.attrs[name])
        elif name not in kernel.defaults:
            raise RunError(f"the {node.op} has no attribute '{name}'", where=f"node '{node.name}'")
    return chosen


def check_count(kernel: Kernel, node: Node, count: int) -> None:
    """Raises RunError where the kernel would take more or fewer data inputs than its op has."""
    if not kernel.is_variadic:
        return
    from pocketgraph.graph import opdefs

    if said := opdefs.wrong_count(node, count):
        raise RunError(said, where=f"node '{node.name}'")


def plain(value: Any) -> Any:
    """An attribute value as kernels like it: bytes as str where they are text."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def evaluate(node: Node, inputs: Sequence[Value], context: Context | None = None) -> tuple[Value, ...]:
    """Runs one node on its data inputs.

    Args:
        node: the node; its attributes are used, its inputs are not looked at.
        inputs: one value for each data input.
        context: for stateful ops; a fresh one by default.

    Returns:
        One value for each output.

    Raises:
        MissingKernelError: nothing computes this op.
        RunError: the kernel refused the inputs; the message names the node and the shapes.
    """
    found = KERNELS.row(node.op)
    if found is None:
        raise MissingKernelError(f"no kernel computes the op '{node.op}'", where=f"node '{node.name}'")
    check_count(found, node, len(inputs))
    keywords = arguments(found, node)
    if found.takes_context:
        keywords["context"] = context or Context(node)
    try:
        with np.errstate(all="ignore"):
            result = found.function(*inputs, **keywords)
    except PocketgraphError as error:
        if type(error) is not RunError or error.where:
            raise
        raise RunError(error.what, where=f"node '{node.name}'", hint=error.hint) from error
    except Exception as error:  # whatever NumPy or Python says of inputs that do not fit
        from pocketgraph.graph import opdefs

        if counted := opdefs.wrong_count(node, len(inputs)):
            raise RunError(counted, where=f"node '{node.name}'") from error
        shapes = ", ".join(f"{getattr(v, 'dtype', type(v).__name__)}{list(getattr(v, 'shape', ()))}" for v in inputs)
        said = f"out of memory: {error}" if isinstance(error, MemoryError) else str(error) or type(error).__name__
        raise RunError(f"{node.op}({shapes}) failed: {said}", where=f"node '{node.name}'") from error
    return result if isinstance(result, tuple) else (result,)
