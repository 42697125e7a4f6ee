"""What would help with a node that a form of the model, such as a .tflite file, has nothing for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pocketgraph.errors import command_on_model, option, quoted
from pocketgraph.freezing.constant_substitution import READERS
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.graph import Graph, Node, node_name, opdefs
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64, STRING
from pocketgraph.graph.epsilon_greedy import gives_random_numbers, greedy_scores
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    CALLS_PYTHON,
    MOVES,
    PASSES_OR_ROUTES,
    PICTURE_FILES,
    PLACEHOLDERS,
    SAME_ELEMENTS,
    ops_with,
)
from pocketgraph.graph.order import dependents, inside_loops, reachable
from pocketgraph.litert.cost_model import MOST_NODES
from pocketgraph.passes.dropout_removal import is_noise_of_dropout
from pocketgraph.passes.training_switches import dropout_share
from pocketgraph.runtime.feeding.encoded_samples import file_form
from pocketgraph.runtime.missing_kernels import help_with_unknown

ROUND = "/round_"
"""What the name of a loop's node is followed by where the loop is unrolled."""
SPECTRA = {
    **dict.fromkeys(("RFFT", "FFT", "IFFT", "RFFT2D", "FFT2D"), False),
    **dict.fromkeys(("IRFFT", "ComplexAbs", "Real", "Imag", "Angle"), True),
}
"""Ops with complex numbers, behind which a network is cut, and whether they give floats."""
RAGGED_SCOPE = re.compile(
    r"(^|/)Ragged(From|To|Convert|Splits|Segment|Concat|Stack|Reduce|Gather|BatchGather|Tile|Mask|Where|Range|Expand|Size|"
    r"Row|NRows|Bounding|Broadcast|Reverse)[A-Za-z]*(_\d+)?/"
)
"""How TensorFlow names what its functions of ragged tensors compute with common ops; users' scopes may begin so."""
BRANCHES = BINARY_SWITCHES | ops_with("branch") - {"Case", "StatelessCase"}
"""What goes one of two ways; Case goes one of many."""
MOST_HEADS = 16  # that a hint names
CARRYING = SAME_ELEMENTS | {"Transpose", "ConcatV2", "Sigmoid", "Softmax"}
"""Not a trait: what detectors put between their last layers and the selection of boxes."""


def help_with(graph: Graph, name: str, argument: str = "values") -> str:
    """What would help with a node that a target has nothing for; "" where nothing is known.

    Args:
        name: the node, perhaps one of an unrolled loop.
        argument: of the Python function at hand, with which placeholders are set for good.
    """
    feed = option("feed", argument)
    node = _written(graph, name)
    if node is None:
        return ""
    if node.op not in graph.functions and opdefs.find(node.op) is None:
        return help_with_unknown([node.op])
    if ragged := ragged_feeds(graph, name):
        return _help_with_ragged(graph, ragged)
    if node.op in ops_with("box_selection", "sequence_decoding") and (heads := heads_before(graph, node)):
        what = "selection of boxes" if node.op in ops_with("box_selection") else "decoder"
        return f"cut in front of the {what}, which is then the app's: {option('outputs')}={','.join(heads)}"
    if STRING in node.attrs.values() and _only_names_classes(node):
        if node.op not in ops_with("table_lookup"):
            return ""  # of the table, which its lookup tells
        return (
            f"the words behind the numbers are the app's: {option('outputs')}={node.data_inputs[1]} gives the numbers"
        )
    if node.op in SPECTRA and (spectrum := _first_real(graph, node)):
        return f"the spectrum is the app's: {option('inputs')}={spectrum} names what to feed"
    if node.op in ("AudioSpectrogram", "Mfcc"):
        mfcc = (user.name for user in graph.consumers.get(node.name, ()) if user.op == "Mfcc")
        return f"the spectrum is the app's: {option('inputs')}={next(mfcc, node.name)} names what to feed"
    if node.op in ("Switch", "Merge", "If", "StatelessIf"):
        return _help_with_branches(graph, feed)
    in_loops = ("Enter", "Exit", "NextIteration", "LoopCond", "While", "StatelessWhile")
    if node.op in in_loops or (node.op.startswith("TensorArray") and any(one.op == "LoopCond" for one in graph)):
        return _help_with_loops(graph, node.name, feed)
    if node.op.startswith("BoostedTrees"):
        return "decision trees have no form there: a frozen graph keeps them, and pocketgraph runs it"
    if node.op in CALLS_PYTHON:
        return (
            "it calls a Python function of the model's owner, which no file holds: compute that in the app and feed "
            f"its result, with {option('inputs')}={node.name}"
        )
    if gives_random_numbers(node):
        return _help_with_random_numbers(graph, name, feed)
    if node.op.startswith("Placeholder"):
        return f"set it for good, as in {feed}={name}=1, or name all {option('inputs')}"
    if (node.op in READERS and node.data_inputs) or is_update(node):
        source = graph.find_producer(node.data_inputs[0], PASSES_OR_ROUTES)
        if source is not None and source.op == "Const":
            command = command_on_model("pocketgraph freeze_graph {} -o repaired.pb --repair=updates,references")
            return f"it wants a variable, and gets a constant: {command} mends that"
    if node.op.startswith(("Var", "RestoreV2", "ReadVariable")):
        command = command_on_model("pocketgraph freeze_graph {} -o frozen.pb")
        return f"its weights are variables: {command} makes constants of them"
    if node.op in ("Assert", "CheckNumerics", "Print"):
        return f"`pocketgraph transform_graph --transforms='remove_nodes(op={node.op})'` takes it out"
    if node.op in PICTURE_FILES or _hands_on_files(graph, node):
        return (
            f"reading picture files is the app's: {command_on_model('pocketgraph ship {} -o out/')} cuts the "
            f"model behind it; {option('inputs')} names the tensor of pixels"
        )
    if node.op.startswith(("String", "Decode", "Encode")) or STRING in node.attrs.values():
        return help_with_texts()
    return ""


def help_with_texts() -> str:
    """What helps with nodes that compute with texts."""
    return f"give the numbers behind the texts: {option('inputs')} names the tensors to feed"


def _help_with_ragged(graph: Graph, fed: Sequence[str]) -> str:
    needed = _needed(graph)
    padded = ",".join(one.name for one in graph if one.op == "RaggedTensorToTensor" and one.name in needed)
    return (
        f"rows of different lengths (a RaggedTensor), fed as values and row splits ({', '.join(fed)}), have no "
        "form on a device: save the model with rows padded to one length, as RaggedTensor.to_tensor() does, or cut "
        f"behind the ragged part with {option('inputs')}{'=' * bool(padded)}{padded}"
    )


def _help_with_loops(graph: Graph, name: str, feed: str) -> str:
    from pocketgraph.runtime.unrolling.constant_trip_counts import constant_trip_counts

    if any(STRING in graph[name].attrs.values() for name in inside_loops(graph)):
        return help_with_texts()
    cut = f"cut before or after it with {option('outputs')}"
    counts = constant_trip_counts(graph)
    if name in counts or (counts and all(node.name in counts for node in graph if node.op == "LoopCond")):
        most = counts.get(name) or max(counts.values())
        return (
            f"a loop of {most:,} round{'s' * (most != 1)} that is not written out has too many nodes for that (over "
            f"{MOST_NODES:,} in all), or random numbers or effects inside: take fewer rounds, or {cut}"
        )
    lengths, bound = _fed_lengths(graph), ""
    if lengths:
        bind = f"{lengths[0]}=10"
        command = command_on_model(f"pocketgraph freeze_graph {{}} -o fixed.pb --bind {quoted(bind)}", f"{feed}={bind}")
        likewise = "".join(f", {name}=10 likewise" for name in lengths[1:])
        bound = f"set it for good, as in {command}{likewise}, or "
    return f"a loop whose length depends on the input cannot be written out: {bound}{cut}"


def _help_with_random_numbers(graph: Graph, name: str, feed: str) -> str:
    if not is_noise_of_dropout(graph, name):
        fed = ",".join(_fed_with_numbers(graph))
        scores = greedy_scores(graph, [one.name for one in dependents(graph, [name])])
        other = f"{option('outputs')}={scores.name} needs no random numbers; or " if scores is not None else ""
        return f"{other}feed the random numbers: {option('inputs')}={fed} names all tensors to feed"
    shares = {other.name: dropout_share(graph, other.name) for other in graph}
    given = " ".join(f"{feed}={at}={share:g}" for at, share in shares.items() if share is not None)
    return f"set dropout's share for good: {given}" if given else without_dropout_help()


def _needed(graph: Graph) -> set[str]:
    """The nodes that the graph's outputs are computed from; all nodes without outputs."""
    return reachable(graph, graph.outputs or graph.nodes, data_only=True, missing_ok=True)


def _fed_with_numbers(graph: Graph) -> list[str]:
    """The placeholders that the model needs, and its random numbers but those of dropout."""
    needed = _needed(graph)
    fed = [node for node in graph if node.name in needed and node.op.startswith("Placeholder")]
    drawn = [node for node in graph if node.name in needed and gives_random_numbers(node)]
    return [node.name for node in (*fed, *drawn) if not is_noise_of_dropout(graph, node.name)]


def help_with_switches(graph: Graph, feed: str = "") -> str:
    """What sets the truths that are fed, and that branches may depend on, for good; "" where none is fed."""
    switches = [other.name for other in graph if other.op == "Placeholder" and other.attr("dtype", FLOAT) is BOOL]
    given = " ".join(f"{feed or option('feed', 'values')}={switch}=false" for switch in switches)
    return f"set what it depends on for good: {given}" if switches else ""


def _help_with_branches(graph: Graph, feed: str) -> str:
    """What would help with branches of which the input decides."""
    if said := help_with_switches(graph, feed):
        return said
    conditions = {node_name(node.data_inputs[1 if "Switch" in node.op else 0]) for node in graph if node.op in BRANCHES}
    named = [node.name for node in graph if node.name in conditions and node.op != "LoopCond"][:MOST_HEADS]
    if not named:
        return ""  # of a loop, which its other nodes tell
    said = " ".join(f"{feed}={name}=true" for name in named)
    return (
        f"a branch that the input decides: say for good which way it goes, as in {said} (or false); or cut in front of "
        f"it with {option('outputs')}; or write a .tflite or .onnx file, which have branches"
    )


def _written(graph: Graph, name: str) -> Node | None:
    """The node of the graph that a name, perhaps of an unrolled loop, is of."""
    return graph.nodes.get(name) or graph.nodes.get(name.partition(ROUND)[0])


def ragged_feeds(graph: Graph, name: str) -> list[str]:
    """The placeholders of a ragged tensor, values and row splits, that a node is computed from; none without one."""
    node = _written(graph, name)
    parts = [one.name for one in graph if one.op.startswith("Ragged") or RAGGED_SCOPE.search(one.name)]
    if node is None or not parts or (reachable(graph, [node.name], missing_ok=True) | {node.name}).isdisjoint(parts):
        return []
    behind = reachable(graph, parts, missing_ok=True)
    fed = [one for one in graph if one.op == "Placeholder" and one.name in behind]
    shapes = [one.shape() for one in fed if one.attr("dtype", FLOAT) in (INT32, INT64)]
    has_splits = any(shape is not None and len(shape.dims or ()) == 1 for shape in shapes)
    return [one.name for one in fed] if has_splits else []


def _only_names_classes(node: Node) -> bool:
    """Whether a node belongs to a table of words that numbers are looked up in."""
    key = node.attrs.get("Tin", node.attrs.get("key_dtype"))
    return node.op.startswith(("LookupTable", "HashTable")) and key in (INT32, INT64)


def _hands_on_files(graph: Graph, node: Node) -> bool:
    """Whether a node hands on files of pictures that the graph decodes, from a placeholder on."""
    if STRING not in node.attrs.values():
        return False
    before = reachable(graph, [node.name], missing_ok=True) if node.name in graph else set(graph.nodes)
    return any(file_form(graph, name) for name in before if graph[name].op in PLACEHOLDERS)


def without_dropout_help() -> str:
    """What takes a dropout, or noise, out that training left on."""
    return f"{command_on_model('pocketgraph freeze_graph {} -o frozen.pb --repair=dropout')} takes it out"


def heads_before(graph: Graph, node: Node) -> list[str]:
    """What a device gives in the place of a node that chooses from answers: the results of the last layers in front of
    a selection of boxes, in the shape and as the shares that the graph makes of them; the scores that a decoder of
    sequences takes."""
    if node.op in ops_with("sequence_decoding"):
        return [node.data_inputs[0]]
    weighing = ops_with("bias", "layer") - MOVES  # a gather here chooses boxes
    layers = {other.name for other in graph if other.op in weighing} - inside_loops(graph)
    ends = layers | {other.name for other in graph if other.op in ops_with("shape")}  # nor what only tells how many
    found = layers & reachable(graph, node.data_inputs, stop=ends, data_only=True, missing_ok=True)
    return sorted(_handed_on(graph, found, node))[:MOST_HEADS]


def _handed_on(graph: Graph, heads: Collection[str], node: Node) -> list[str]:
    """Where what layers give is first computed with on its way to a node: behind what changes its shape, puts it
    together or makes shares of it."""
    before = reachable(graph, node.data_inputs, data_only=True, missing_ok=True) | {node.name}
    carried, waiting = set(heads), list(heads)

    def users(name: str) -> list[Node]:
        return [user for user in graph.consumers.get(name, ()) if user.name in before]

    while waiting:
        for user in users(waiting.pop()):
            data = user.data_inputs[:-1] if user.op == "ConcatV2" else user.data_inputs[:1]
            is_whole = all(node_name(ref) in carried for ref in data)
            if user.name not in carried and user.op in CARRYING and is_whole:
                carried.add(user.name)
                waiting.append(user.name)
    return [
        name
        for name in carried
        if any(user.name not in carried and user.op not in ops_with("shape") for user in users(name))
    ]


def _fed_lengths(graph: Graph) -> list[str]:
    """The single whole numbers that are fed, and that loops go on by."""
    loops = [node.name for node in graph if node.op in ("LoopCond", "While", "StatelessWhile")]
    deciding = reachable(graph, loops, missing_ok=True)
    return [
        node.name
        for node in graph
        if node.op == "Placeholder" and node.name in deciding and node.attr("dtype", FLOAT) in (INT32, INT64)
        and not ((shape := node.shape()) is not None and shape.dims)
    ]  # fmt: skip


def _first_real(graph: Graph, node: Node) -> str:
    """The first floats behind complex numbers, such as the magnitudes of a spectrum; "" without. Where a spectrum is
    made of those again, as for coefficients of the mel scale, the first behind that.
    """
    found, waiting, seen = "", [node], {node.name}
    while waiting:
        one = waiting.pop(0)
        if SPECTRA.get(one.op):
            found = found or one.name
        elif found and one.op == "RFFT":
            found = ""
        behind = [other for other in graph.consumers.get(one.name, ()) if other.name not in seen]
        seen.update(other.name for other in behind)
        waiting += behind
    return found
