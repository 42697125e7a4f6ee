"""The four signatures of a training graph: train, infer, save and restore, as devices call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pocketgraph.differentiation.backpropagation import checked_ref
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.variable_nodes import INIT, value_of
from pocketgraph.errors import GraphError
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph, Node, Shape, Signature, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS, VARIABLES
from pocketgraph.graph.order import reachable

METHOD = "tensorflow/serving/predict"


def add_signatures(
    graph: Graph | PathLike, outputs: str | Sequence[str] | Mapping[str, str], *, features: str | None = None
) -> Graph:
    """Adds the signatures ``train``, ``infer``, ``save`` and ``restore`` to what ``minimize`` made.

    ``train`` takes what the loss needs, makes a step and gives the ``loss`` from before it. ``infer`` takes what the
    outputs need. ``save`` writes all variables, slots of the optimizer included, to the checkpoint ``checkpoint_path``,
    and ``restore`` reads them; both give the path back. Inputs are called as their placeholders. With ``features``
    there is ``load`` as well: it gives that tensor, which ``train`` takes in place of what it is computed from.

    Args:
        graph: the graph, or its path as ``load`` takes one; its outputs are a loss and the operation that trains.
        outputs: what ``infer`` computes: tensors, or tensors by public name.
        features: a tensor behind which everything lies that is trained, such as a bottleneck: computed once a sample
            and kept, it need not be computed in every step.

    Returns:
        The graph with the signatures, which ``save`` writes as a SavedModel and ``export`` as a .tflite file.

    Raises:
        UsageError: this is neither.
        GraphError: the graph is not one of ``minimize``, has no variables, or a variable has no first value; a tensor
            is not there; two names are the same, or the graph has a signature of one of these names.
    """
    graph = graph_of(graph, "add_signatures")
    loss, train = _loss_and_train(graph)
    variables = [node for node in graph if node.op in VARIABLES]
    _check_first_values(graph, variables)
    if features is not None:
        features = checked_ref(graph, features)
        _check_all_behind(graph, features, [loss, train], variables)
    taken = [key for key in ("train", "infer", "save", "restore", "load") if key in graph.signatures]
    if taken:
        raise GraphError(
            f"the graph has a signature '{taken[0]}' already", hint="leave it out first: graph.replace(signatures={})"
        )
    given = _keyed(graph, outputs)
    builder = GraphBuilder(graph)
    with builder.scope("signatures"):
        stepped = builder.add("Identity", loss, name="loss", control=[train])
        path = builder.add("Placeholder", name="checkpoint_path", dtype=STRING, shape=Shape(()))
        names = builder.const([node.name.encode() for node in variables], STRING, name="names")
        slices = builder.const([b""] * len(variables), STRING, name="slices")
        # Restoring changes the variables in place, so saving reads them all before it returns.
        values = [value_of(builder, node) for node in variables]
        written = builder.add("SaveV2", path, names, slices, values)
        saved = builder.add("Identity", path, name="saved", control=[written])
        dtypes = tuple(node.dtype("dtype").base for node in variables)
        read = builder.add("RestoreV2", path, names, slices, dtypes=dtypes)
        assigned = []
        for port, node in enumerate(variables):
            value = f"{read}:{port}" if port else read
            if node.op == "VarHandleOp":
                assigned.append(builder.add("AssignVariableOp", node.name, value, dtype=node.dtype("dtype").base))
            else:
                assigned.append(builder.add("Assign", node.name, value))
        restored = builder.add("Identity", path, name="restored", control=assigned)
    signatures = {
        "train": Signature(_placeholders(graph, [loss, train], features), {"loss": canonical(stepped)}, METHOD),
        "infer": Signature(_placeholders(graph, given.values()), given, METHOD),
        "save": Signature({"checkpoint_path": canonical(path)}, {"checkpoint_path": canonical(saved)}, METHOD),
        "restore": Signature({"checkpoint_path": canonical(path)}, {"checkpoint_path": canonical(restored)}, METHOD),
    }
    if features is not None:
        name = features.removesuffix(":0")
        signatures["load"] = Signature(_placeholders(graph, [features]), {name: features}, METHOD)
    result = builder.finished([stepped, saved, restored])
    return result.replace(signatures={**graph.signatures, **signatures})


def _loss_and_train(graph: Graph) -> tuple[str, str]:
    """The loss and the operation that trains."""
    if len(graph.outputs) == 2:
        loss, train = graph.outputs
        node = graph.nodes.get(train)
        if node is not None and node.op == "NoOp":
            return checked_ref(graph, loss), train
    raise GraphError("the outputs of the graph are not a loss and an operation that trains", hint="see minimize")


def _check_first_values(graph: Graph, variables: Sequence[Node]) -> None:
    """Makes sure that ``init`` gives every variable a value.

    Raises:
        GraphError: it does not; the variables are named.
    """
    if not variables:
        raise GraphError("the graph has no variables", hint="see trainable")
    begun = reachable(graph, [INIT]) if INIT in graph else ()
    missing = [node.name for node in variables if node.name not in begun]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing[:10]) + (" and more" if len(missing) > 10 else "")
        raise GraphError(f"the operation '{INIT}' gives no value to {listed}", hint="see trainable")


def _keyed(graph: Graph, outputs: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Tensors by public name, by default the node's name."""
    if isinstance(outputs, Mapping):
        return {key: checked_ref(graph, ref) for key, ref in outputs.items()}
    found: dict[str, str] = {}
    for ref in [outputs] if isinstance(outputs, str) else outputs:
        tensor = checked_ref(graph, ref)
        key = tensor.removesuffix(":0")
        if key in found:
            raise GraphError(f"two outputs are called '{key}'", hint="give each a name: outputs={'name': 'tensor'}")
        found[key] = tensor
    return found


def _check_all_behind(graph: Graph, features: str, ends: Sequence[str], variables: Sequence[Node]) -> None:
    """Makes sure that nothing that is trained comes before the features.

    Raises:
        GraphError: something does, or nothing lies behind them.
    """
    if node_name(features) not in reachable(graph, ends):
        raise GraphError(f"the loss does not depend on '{features}'")
    before = reachable(graph, [features])
    trained = [node.name for node in variables if node.name in before]
    if trained:
        raise GraphError(
            f"'{features}' depends on variables, such as '{trained[0]}'", hint="train what is behind it only"
        )


def _placeholders(graph: Graph, fetches: Iterable[str], features: str | None = None) -> dict[str, str]:
    """The placeholders that these need, by their names; with features, these and no placeholder that only they need."""
    needed = reachable(graph, fetches, stop=[features] if features else ())
    found = {
        node.name: f"{node.name}:0" for node in graph if node.name in needed and node.op in NO_DEFAULT_PLACEHOLDERS
    }
    return {features.removesuffix(":0"): features, **found} if features else found
