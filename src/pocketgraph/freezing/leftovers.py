"""What training left in a frozen graph that will not run or not do what it seems to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pocketgraph.errors import did_you_mean, option
from pocketgraph.freezing.graph_variables import variables
from pocketgraph.freezing.repair.augmentation import augmentations
from pocketgraph.freezing.repair.references import read_constant
from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.freezing.tables import unfilled_tables
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import RANDOM, REFERENCES
from pocketgraph.graph.order import reachable
from pocketgraph.pages.quantities import listed
from pocketgraph.passes.dropout_removal import is_noise_of_dropout

_QUEUES = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue", "OneShotIterator", "Iterator")
"""Not a trait: what training's input pipelines leave behind."""
NO_INPUT = "no input leads to the outputs"


def unknown_variables(*graphs: Graph, listed_by_user: Iterable[str]) -> list[str]:
    """One line a name that is to be frozen, or not to be, and that no variable of these graphs has."""
    names = dict.fromkeys(listed_by_user)
    known = {name for graph in graphs if names for name in variables(graph)}
    return [
        f"no variable is called '{name}', so none is frozen or left by that name; {did_you_mean(name, known)}".rstrip(
            "; "
        )
        for name in names
        if name not in known
    ]


def leftovers(frozen: Graph, whole: Graph) -> list[str]:
    """One line a finding; an empty list when nothing stands out."""
    found = []
    constants = {node.name for node in frozen if node.op == "Const"}
    updates = changed_constants(frozen)
    if updates:
        found.append(
            f"{listed(updates, quoted=True)} would change a variable that is now a constant, and TensorFlow will not "
            f"load the graph; drop it with {option('repair')}=updates, freeze the evaluation graph, or "
            "choose outputs that do not depend "
            "on training"
        )
    for name, function in frozen.functions.items():
        if name in whole.functions:
            continue
        inside = [node.name for node in function.nodes if is_update(node)]
        if inside:
            listing = listed(inside, quoted=True)
            found.append(f"the function '{name}' would change a variable that is now a constant: {listing}")
    wanting = REFERENCES & frozen.ops
    references = [
        node.name
        for node in frozen
        if (node.op in wanting and node_name(next(iter(node.data_inputs), "")) in constants)
        or read_constant(frozen, node) is not None
    ]
    if references:
        found.append(
            f"{listed(references, quoted=True)} would need a variable and now would get a constant; "
            f"{option('repair')}=references"
        )
    if not any(node.op.startswith("Placeholder") for node in whole):
        spoilt = sum(is_update(node) and whole.constant(node.data_inputs[0]) is not None for node in whole)
        if spoilt:
            found.append(
                f"this graph was frozen with its initializer as the output: it holds {spoilt} initial assignments to "
                "constants and no input, so nothing of the model; freeze the training graph again with the model's own "
                "output"
            )
    data = _constant_data(frozen, whole)
    if data:
        found.append(
            f"{NO_INPUT}, so that the answer is always the same: training took its data from constants; name what is "
            f"fed where a command takes it, as in {option('inputs')}={data}"
        )
    found.extend(unfilled_tables(frozen, whole))
    queues = [node.name for node in frozen if node.op.startswith(_QUEUES)]
    if queues:
        found.append(
            f"{listed(queues, quoted=True)} still feeds the graph from training's input pipeline; feed the tensor "
            f"behind it, or put a placeholder there with {option('repair')}=inputs"
        )
    random = {one.scope: is_noise_of_dropout(frozen, one.draw) for one in augmentations(frozen)}
    for kind in sorted({*random.values()}):  # noise that is added is named as where it is met when the graph runs
        scopes = [scope for scope, is_noise in random.items() if is_noise is kind]
        found.append(
            f"{listed(scopes, quoted=True)} {'changes' if len(scopes) == 1 else 'change'} the input by random numbers, "
            f"as in training, so that answers differ from run to run; "
            f"{option('repair')}={'dropout' if kind else 'augmentation'} takes that out"
        )
    return found


def _constant_data(frozen: Graph, whole: Graph) -> str:
    """The largest constant that was none of the variables, in a graph of nothing but constants; "" in any other."""
    if any(not node.data_inputs and node.op not in ("Const", "NoOp") for node in frozen) or frozen.ops & RANDOM:
        return ""
    stored = {node.name for node in whole if node.op == "Const"} if variables(whole) else set()
    sizes = {
        node.name: node.tensor.size
        for node in frozen
        if node.name in stored and node.op == "Const" and node.tensor.dtype.is_floating and len(node.tensor.shape) > 1
    }
    return max(sizes, key=sizes.__getitem__, default="")


def changed_constants(frozen: Graph, outputs: Sequence[str] | None = None) -> list[str]:
    """The nodes that would change a variable that is now a constant; of those that ``outputs`` need, where given."""
    needed = None if outputs is None else reachable(frozen, outputs, missing_ok=True)
    constants = {node.name for node in frozen if node.op == "Const"}
    return [
        node.name
        for node in frozen
        if is_update(node) and updated_variable(frozen, node) in constants and (needed is None or node.name in needed)
    ]
