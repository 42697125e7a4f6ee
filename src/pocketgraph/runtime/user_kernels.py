"""Kernels that users register for ops of their own: what computes the op, its shape rule, its lowering to LiteRT."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from sys import getrefcount
from typing import Any, TypeVar

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError, UsageError, did_you_mean
from pocketgraph.graph import DType, Node, Shape, op_spec, opdefs
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import set_user_ops
from pocketgraph.graph.opdefs import OpDef
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.kernels.registry import KERNELS, Kernel, plain
from pocketgraph.kernels.shapes.rules import SHAPE_RULES, Rule, ShapeCall
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import LOWERINGS, Lowering
from pocketgraph.litert.narrow_floats import widened
from pocketgraph.litert.operator_forms import misuse
from pocketgraph.litert.part_lowering import MALFORMED

F = TypeVar("F", bound=Callable[..., Any])

_changing = threading.RLock()


def kernel(
    op: str,
    *,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    attrs: Iterable[str] = (),
    shape: Rule | None = None,
    lowering: Lowering | None = None,
    stateful: bool = False,
    override: bool = False,
) -> Callable[[F], F]:
    """Registers a function as what computes an op that pocketgraph has no kernel for.

    From then on sessions that are opened run the op, in loops, branches and functions too, on either engine; its
    signature goes wherever signatures are looked up (freezing, shape inference, transforms, summaries). Nothing of a
    graph that holds such ops is kept in the cache on disk.

    The function takes the inputs in order as arrays (``object`` arrays of ``bytes`` for strings), which it may not
    change, and as keyword-only arguments the attributes that it wants (types as DType, strings as ``str``, lists as
    tuples). With a parameter ``context`` it is given a ``kernels.Context`` with the node and the session's state. It
    returns one array, or a tuple with one array an output, in the types that the signature says.

    Args:
        op: the op type.
        inputs, outputs, attrs: its signature, as graph.op_spec.define reads it: ``["x: T"]``, ``["y: T"]``,
            ``["T: {float, half} = float", "limit: float = 1.0"]``. Left out for an op that TensorFlow has, too.
        shape: takes a ``kernels.shapes.Call`` and gives the Shape of each output (or the only one); without it the
            shapes are found when the op runs.
        lowering: takes an ``Emit`` and the node and adds LiteRT operators for it (docs/custom-kernels.md); it raises
            Unsupported for what it cannot express. Without it the op runs in NumPy.
        stateful: whether it may give different results for the same inputs, or has effects.
        override: whether it may take the place of a kernel that was registered by this function before.

    Returns:
        What registers a function and returns it.

    Raises:
        UsageError: the op has a kernel, or a signature that the function does not go with.
        GraphError: the signature cannot be read.

    >>> import numpy as np, pocketgraph
    >>> @pocketgraph.kernel("Halve", inputs=["x: float"], outputs=["y: float"], shape=lambda call: call.shape(0))
    ... def halve(x):
    ...     return x * np.float32(0.5)
    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     y = Halve(x)
    ... ''')
    >>> with pocketgraph.Session(graph) as session:
    ...     session.run("y", {"x": [1.0, 3.0]})
    [array([0.5, 1.5], dtype=float32)]
    >>> pocketgraph.runtime.remove_kernel("Halve")
    """
    is_given = op in KERNELS.given
    if op in KERNELS and not is_given:
        raise UsageError(
            f"pocketgraph computes {op} itself, and takes what it does for granted in many places",
            hint="give the op another name, and rename it in the graph with rename_op",
        )
    if is_given and not override:
        raise UsageError(f"a kernel of {op} was registered before", hint="pass override=True to replace it")
    definition = _definition(op, inputs, outputs, attrs, stateful)

    def register(function: F) -> F:
        found = _kernel(op, definition, function)
        with _changing:
            if op in KERNELS.given and not override:
                raise UsageError(f"a kernel of {op} was registered before", hint="pass override=True to replace it")
            if not _is_tensorflows(op):
                opdefs.give(op, definition)
            SHAPE_RULES.give(op, None if shape is None else _shape_rule(op, shape))
            LOWERINGS.give(op, None if lowering is None else _lowering(op, lowering))
            KERNELS.give(op, found)
            set_user_ops(KERNELS.given)
        return function

    return register


def remove_kernel(op: str) -> None:
    """Takes away what ``kernel`` registered for an op.

    Raises:
        UsageError: nothing was.
    """
    with _changing:
        if op not in KERNELS.given:
            hint = did_you_mean(op, KERNELS.given) or f"registered are {', '.join(KERNELS.given) or 'none'}"
            raise UsageError(f"no kernel was registered for {op}", hint=hint)
        KERNELS.give(op, None)
        set_user_ops(KERNELS.given)
        SHAPE_RULES.give(op, None)
        LOWERINGS.give(op, None)
        opdefs.give(op, None)


def _shape_rule(op: str, rule: Rule) -> Rule:
    """A user's shape rule, which gives nothing but shapes."""

    def checked(call: ShapeCall) -> Shape | Sequence[Shape]:
        found = rule(call)
        if found is None:
            return UNKNOWN
        each = found if isinstance(found, list | tuple) else [found]
        if not all(isinstance(shape, Shape) for shape in each):
            raise UsageError(
                f"the shape rule of {op} gives {found!r}", hint="give a Shape, or a list with one for each output"
            )
        return found

    return checked


def _lowering(op: str, lowering: Lowering) -> Lowering:
    """A user's lowering; where it fails, NumPy runs the node, and ``plan`` says why."""

    def checked(emit: Emit, node: Node) -> None:
        first = len(emit.operations)
        try:
            emit.results(lowering(emit, node))
        except (PocketgraphError, *MALFORMED):
            raise
        except Exception as error:  # whatever somebody's code raises
            raise emit.unsupported(f"the lowering of {op} failed: {type(error).__name__}: {error}") from error
        for operation in emit.operations[first:]:
            if wrong := misuse(operation):
                raise emit.unsupported(f"the lowering of {op} emits {wrong}")
        for port, declared in enumerate(opdefs.output_dtypes(node)):
            ref = f"{node.name}:{port}"
            value, shape = emit.values.get(ref), emit.inferred.shape(ref)
            if value is None:
                continue
            if value.dtype is not widened(declared.base):
                raise emit.unsupported(
                    f"the lowering of {op} gives {value.dtype.name} for output {port}, its signature {declared.name}"
                )
            if shape.is_known and shape.known != value.shape:
                raise emit.unsupported(
                    f"the lowering of {op} gives {list(value.shape)} for output {port}, its shape rule {shape}"
                )

    return checked


def _is_tensorflows(op: str) -> bool:
    found = opdefs.find(op)
    return found is not None and op not in opdefs.given()


def _definition(
    op: str, inputs: Iterable[str] | None, outputs: Iterable[str] | None, attrs: Iterable[str], stateful: bool
) -> OpDef:
    """The signature that goes with these arguments; errors as for ``kernel``."""
    attrs = _listed(op, attrs)
    if _is_tensorflows(op):
        if inputs is not None or outputs is not None or attrs or stateful:
            raise UsageError(
                f"{op} is an op of TensorFlow with a signature of its own: {op_spec.text_of(opdefs.definition(op))}",
                hint="leave out inputs, outputs, attrs and stateful",
            )
        return opdefs.definition(op)
    if inputs is None or outputs is None:
        raise UsageError(
            f"nobody knows the signature of {op}",
            hint='say it with inputs=["x: float"], outputs=["y: float"], attrs=[…]',
        )
    return op_spec.define(op, _listed(op, inputs), _listed(op, outputs), attrs, stateful=stateful)


def _listed(op: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise UsageError(f"the signature of {op} is not a list: {texts!r}", hint=f"write [{texts!r}]")
    return list(texts)


def _kernel(op: str, definition: OpDef, function: Callable[..., Any]) -> Kernel:
    """The table's row for this function.

    Raises:
        UsageError: its parameters are not those of the signature.
    """
    own, defaults, takes_context = _parameters(op, definition, function)
    given = {name: plain(attr.default) for name, attr in definition.attrs.items() if attr.default is not None}
    outputs = definition.outputs
    deciding = tuple(
        dict.fromkeys(name for arg in outputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name)
    )

    @lru_cache(maxsize=64)
    def types(attributes: tuple[Any, ...]) -> tuple[DType, ...]:
        node = Node(op, op, (), dict(zip(deciding, attributes, strict=True)))
        return tuple(dtype for arg in outputs for dtype in opdefs.arg_dtypes(node, arg))

    def run(*inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        wanted = types(tuple(attributes[name] for name in deciding))
        taken = {name: attributes[name] for name in own if name in attributes}
        if takes_context:
            taken["context"] = attributes["context"]
        result = function(*map(_read_only, inputs), **taken)
        found = list(result) if isinstance(result, tuple) else [result]
        del result  # and with it the tuple, which would count as an owner
        if len(found) != len(wanted):
            raise RunError(f"the kernel of {op} gave {len(found)} outputs, its signature has {len(wanted)}")
        is_own = [_owners(found, number) == _SOLE for number in range(len(found))]
        checked = [_checked(op, *each) for each in zip(range(len(wanted)), found, wanted, strict=True)]
        return tuple([value if own else _read_only(value) for value, own in zip(checked, is_own, strict=True)])

    return Kernel(op, run, (tuple(dict.fromkeys((*own, *deciding))), {**given, **defaults}, takes_context))


def _owners(values: list[Any], index: int) -> int:
    return getrefcount(values[index])


_SOLE = _owners([np.empty(1)], 0)
"""What Python counts where a kernel kept no reference to what it gave: what it kept may not be handed out."""


def _read_only(value: Any) -> Any:
    if type(value) is not np.ndarray or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _checked(op: str, number: int, value: Any, dtype: DType) -> Any:
    """An output as an array of its type; Python's numbers become it.

    Raises:
        RunError: an array of another type, or nothing.
    """
    if dtype.base.name in ("resource", "variant"):
        return value
    if value is None:
        raise RunError(f"the kernel of {op} gave None for output {number}", hint="return an array")
    if not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value, object if dtype is STRING else dtype.numpy)
    array = np.asarray(value)
    if array.dtype != dtype.numpy:
        raise RunError(
            f"the kernel of {op} gave {array.dtype} for output {number}, which is {dtype.name}",
            hint=f"return it as .astype(np.{dtype.numpy.name})"
            if dtype is not STRING
            else "return an object array of bytes",
        )
    return array


def _parameters(
    op: str, definition: OpDef, function: Callable[..., Any]
) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """The attributes that a function takes, its defaults for them, and whether it takes ``context``.

    Raises:
        UsageError: they do not go with the signature.
    """
    said = op_spec.text_of(definition)
    parameters = inspect.signature(function).parameters.values()
    attrs = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "context")
    for name in attrs:
        if name not in definition.attrs:
            hint = did_you_mean(name, definition.attrs) or f"its attributes are {', '.join(definition.attrs) or 'none'}"
            raise UsageError(
                f"the function for {said} takes the attribute '{name}', which {op} does not have", hint=hint
            )
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        attrs = tuple(definition.attrs)
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "context"
    ]
    needed = sum(p.default is p.empty for p in positional)
    takes_many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if any(arg.number_attr or arg.type_list_attr for arg in definition.inputs):
        if not takes_many:
            raise UsageError(f"the function for {said} must take any number of inputs, as *inputs")
    elif needed > len(definition.inputs) or (len(positional) < len(definition.inputs) and not takes_many):
        raise UsageError(
            f"the function for {said} takes {len(positional)} inputs, not {len(definition.inputs)}",
            hint="inputs are positional, attributes are keyword-only (behind a *)",
        )
    defaults = {p.name: p.default for p in parameters if p.name in attrs and p.default is not p.empty}
    return attrs, defaults, any(p.name == "context" for p in parameters)
