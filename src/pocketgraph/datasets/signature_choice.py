"""Which of several signatures data are for, where none is the main one."""

from __future__ import annotations

from pocketgraph.datasets.named_arrays import SampleSource, fitting_signature
from pocketgraph.errors import UsageError, option
from pocketgraph.formats.meta_graph import main_signature
from pocketgraph.graph import Graph


def refuse_several_signatures(graph: Graph, data: SampleSource | None) -> None:
    """Refuses a graph of several signatures without a main one, where one is to be taken; the hint names the one that
    the data fit, where there are some, else one that takes inputs.

    Raises:
        UsageError: there are several.
        FormatError: the data's file is damaged.
    """
    keys = sorted(graph.public_signatures)
    if len(keys) < 2 or main_signature(graph) is not None:
        return
    inputs = {key: graph.signatures[key].inputs for key in keys}
    fitting = fitting_signature(data, inputs) if data is not None else None
    likely = next((key for key in keys if inputs[key]), keys[0])
    raise UsageError(
        f"the model has the signatures {', '.join(keys)}, and {'data are for' if data is not None else 'a file is of'} "
        "one of them",
        hint=f"{option('signature')}={fitting or likely}",
    )
