"""A graph with a loss becomes a training graph: gradients, and an optimizer's op for each variable."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.differentiation.backpropagation import GradientTarget, backpropagate, carries, checked_ref
from pocketgraph.differentiation.gradients import without_calls
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.optimizer_ops import OPTIMIZERS, Optimizer
from pocketgraph.differentiation.variable_nodes import GLOBAL_STEP, add_variable, read_variable, with_initialization
from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape
from pocketgraph.graph.dtype import RESOURCE, STRING
from pocketgraph.graph.op_traits import VARIABLES


def minimize(
    graph: Graph | PathLike,
    loss: str,
    optimizer: str = "sgd",
    *,
    learning_rate: float | str = 0.01,
    variables: str | Iterable[str] | None = None,
    **parameters: float | bool,
) -> Graph:
    """Adds a step of training: one operation that moves the variables against the gradient of a loss.

    Args:
        graph: a graph with variables; ``trainable`` makes them of constants.
        loss: the tensor that shall become small; several elements are summed.
        optimizer: ``sgd``, ``momentum``, ``adagrad``, ``rmsprop``, ``adam``, ``adadelta`` or ``ftrl``.
        learning_rate: a number, or the name of a scalar tensor of the graph, such as ``add_schedule`` adds.
        variables: the names of the variables that are trained; by default all that the loss depends on.
        parameters: those of the optimizer, by default as in TensorFlow 1.15: ``momentum`` (0.9), ``use_nesterov``;
            ``initial_accumulator`` (0.1); ``rho`` (0.9), ``momentum`` (0.0), ``epsilon`` (1e-10); ``beta1`` (0.9),
            ``beta2`` (0.999), ``epsilon`` (1e-8), ``use_nesterov``; ``rho`` (0.95), ``epsilon`` (1e-8);
            ``initial_accumulator`` (0.1), ``l1``, ``l2``, ``lr_power`` (-0.5).

    Returns:
        The graph. Its ``outputs`` are the loss and the operation that trains (``GradientDescent``, ``Adam``, …). A run
        of both gives the loss from before the step. A loss that is not finite is an error, and moves nothing. The
        operation ``init`` initializes what the optimizer keeps, and all that it initialized before. A whole-number
        variable ``global_step`` counts the steps.

    Raises:
        UsageError: this is neither.
        GraphError: the optimizer, a parameter, a tensor or a variable is not known, no variable has a gradient, or ops
            on the way have none; all of them are named.
    """
    graph = graph_of(graph, "minimize")
    method = OPTIMIZERS.get(optimizer)
    if method is None:
        raise GraphError(f"there is no optimizer '{optimizer}'", hint=f"there are {', '.join(OPTIMIZERS)}")
    for name in parameters:
        if name not in method.defaults:
            known = ", ".join(method.defaults) or "none but learning_rate"
            raise GraphError(f"{optimizer} has no parameter '{name}'", hint=f"it has {known}")
    rate = [learning_rate] if isinstance(learning_rate, str) else []
    graph = without_calls(graph, [loss, *rate])
    builder = GraphBuilder(graph)
    if not carries(builder.inferred.dtype(checked_ref(graph, loss))):
        raise GraphError(f"the loss '{loss}' is not a tensor of floating numbers")
    candidates = _variables(graph, variables)
    if isinstance(learning_rate, str):
        checked_ref(graph, learning_rate)
    with builder.scope("gradients"):
        found = backpropagate(builder, [GradientTarget(loss)], [node.name for node in candidates])
    trained = [(node, grad) for node, grad in zip(candidates, found, strict=True) if grad is not None]
    if not trained or (variables is not None and len(trained) < len(candidates)):
        apart = ", ".join(node.name for node, grad in zip(candidates, found, strict=True) if grad is None)
        raise GraphError(f"the loss '{loss}' does not depend on {apart or 'any variable'}", hint="see trainable")
    step = _TrainingStep(builder, method, {**method.defaults, **parameters}, learning_rate)
    train = step.added(trained, loss)
    result = builder.finished([train, *step.assigned]).replace(outputs=(loss, train))
    return with_initialization(result, step.assigned) if step.assigned else result


def _variables(graph: Graph, names: str | Iterable[str] | None) -> list[Node]:
    """The nodes of variables of floating numbers, by default all of the graph."""
    known = {node.name: node for node in graph if node.op in VARIABLES and node.dtype("dtype").is_floating}
    if names is None:
        return list(known.values())
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise GraphError(f"the graph has no variable '{name}'", hint=did_you_mean(name, known) or "see trainable")
    return [known[name] for name in listed]


class _TrainingStep:
    """The nodes of one step.

    Attributes:
        assigned: the nodes that give the slots their first values.
    """

    def __init__(
        self, builder: GraphBuilder, method: Optimizer, values: dict[str, float | bool], rate: float | str
    ) -> None:
        self.builder, self.method, self.values, self.rate = builder, method, values, rate
        self.assigned: list[str] = []
        self._scalars: dict[tuple[str, DType], str] = {}

    def added(self, trained: list[tuple[Node, str]], loss: str) -> str:
        """Adds them; returns the name of the operation that runs them all."""
        builder, method = self.builder, self.method
        train = builder.unique(method.scope)
        # No variable moves before all gradients, and the loss, are computed: they read the variables in place.
        checked = self._checked(train, loss)
        read = sorted({gradient.partition(":")[0] for _, gradient in trained} | {checked})
        gate = builder.add("NoOp", name="gradients/group_deps", control=read)
        slots = {node.name: self._slots(node) for node, _ in trained}
        first = trained[0][0]
        powers = {name: self._variable(name, self.values[by], first, Shape(())) for name, by in method.powers.items()}
        updates = []
        for node, gradient in trained:
            dtype = node.dtype("dtype").base
            inputs = [node.name, *slots[node.name]]
            inputs += [
                gradient if name == "grad" else self._power(powers[name], dtype) if name in powers
                else self._scalar(train, name, dtype)
                for name in method.arguments
            ]  # fmt: skip
            flags: dict[str, AttrValue] = {
                name: bool(self.values[name]) for name, value in method.defaults.items() if isinstance(value, bool)
            }
            kind = "Resource" if node.op == "VarHandleOp" else ""
            name = f"{train}/update_{node.name}/{kind}{method.op}"
            updates.append(builder.add(f"{kind}{method.op}", *inputs, name=name, control=[gate], **flags))
        for name, variable in powers.items():
            updates.append(self._multiplied(train, variable, method.powers[name], first, updates))
        counter = builder.graph.nodes.get(GLOBAL_STEP)
        if counter is not None and counter.op in VARIABLES and counter.dtype("dtype").is_integer:
            updates.append(self._counted(train, counter, updates))
        return builder.put(Node(train, "NoOp", [f"^{update}" for update in updates]))

    def _checked(self, train: str, loss: str) -> str:
        """Adds an assertion that the loss is finite: what runs behind it never gets the gradients of another one."""
        builder = self.builder
        finite = builder.add("IsFinite", loss, name=f"{train}/is_finite")
        every = finite
        if builder.static_shape(loss).rank != 0:
            rank = builder.add("Rank", finite, name=f"{train}/rank")
            first, step = (builder.const(number, name=f"{train}/{number}") for number in (0, 1))
            axes = builder.add("Range", first, rank, step, name=f"{train}/axes")
            every = builder.add("All", finite, axes, name=f"{train}/all_finite")
        said = builder.const(b"the loss is not finite:", STRING, name=f"{train}/not_finite")
        return builder.add("Assert", every, [said, loss], name=f"{train}/assert_finite")

    def _slots(self, node: Node) -> list[str]:
        """The slots of one variable, which have its shape."""
        shape = node.shape()
        if shape is None or not shape.is_known:
            raise GraphError("the variable's shape is not known", where=f"node '{node.name}'")
        found = []
        for start in self.method.slots:
            value = self.values[start] if isinstance(start, str) else start
            found.append(self._variable(f"{node.name}/{self.method.scope}", value, node, shape))
        return found

    def _variable(self, name: str, value: float, like: Node, shape: Shape) -> str:
        """Adds a variable of another one's kind and type, filled with a value."""
        builder, dtype = self.builder, like.dtype("dtype").base
        builder.device = like.device
        name = builder.unique(name)
        number = builder.const(value, dtype, name=f"{name}/Initializer/Const")
        sizes = builder.const(shape.known, name=f"{name}/Initializer/shape")
        initial = builder.add("Fill", sizes, number, name=f"{name}/Initializer/Fill")
        resource = like.op == "VarHandleOp"
        self.assigned.append(add_variable(builder, name, initial, dtype, shape, resource=resource))
        return name

    def _power(self, variable: str, dtype: DType) -> str:
        """The value of a power, in the type of the variable that it is used for."""
        key = (f"read {variable}", dtype)
        if key not in self._scalars:
            kept = self.builder.added[variable].dtype("dtype")
            read = self._scalars.setdefault((f"read {variable}", kept), read_variable(self.builder, variable, kept))
            self._scalars[key] = read if kept is dtype else self.builder.add("Cast", read, DstT=dtype)
        return self._scalars[key]

    def _scalar(self, train: str, name: str, dtype: DType) -> str:
        """A parameter, or the learning rate, as a tensor."""
        key = (name, dtype)
        if key not in self._scalars:
            value = self.rate if name == "lr" else self.values[name]
            if isinstance(value, str):
                given = self.builder.dtype(value).base
                self._scalars[key] = value if given is dtype else self.builder.add("Cast", value, DstT=dtype)
            else:
                title = "learning_rate" if name == "lr" else name
                self._scalars[key] = self.builder.const(value, dtype, name=f"{train}/{title}")
        return self._scalars[key]

    def _multiplied(self, train: str, variable: str, by: str, like: Node, behind: list[str]) -> str:
        """A power, multiplied once more when all updates are done."""
        builder = self.builder
        dtype = like.dtype("dtype").base
        factor = self._scalar(train, by, dtype)
        product = builder.add("Mul", self._power(variable, dtype), factor, name=f"{train}/mul", control=behind)
        if builder.dtype(variable) is RESOURCE:
            return builder.add("AssignVariableOp", variable, product, name=f"{train}/Assign", dtype=dtype)
        return builder.add("Assign", variable, product, name=f"{train}/Assign")

    def _counted(self, train: str, counter: Node, behind: list[str]) -> str:
        """The number of steps, plus one when all updates are done."""
        builder, dtype = self.builder, counter.dtype("dtype").base
        one = builder.const(1, dtype, name=f"{train}/one")
        if counter.op == "VarHandleOp":
            return builder.add(
                "AssignAddVariableOp", counter.name, one, name=f"{train}/count", control=behind, dtype=dtype
            )
        return builder.add("AssignAdd", counter.name, one, name=f"{train}/count", control=behind)
