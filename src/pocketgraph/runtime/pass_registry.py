"""All passes by name: those over graphs, over LiteRT programs and over steps; and how they are switched off."""

from __future__ import annotations

import os
from collections.abc import Collection

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.graph.record import Record

ENVIRONMENT = "POCKETGRAPH_WITHOUT"
GRAPH, PROGRAM, STEPS = "graph", "program", "steps"
STEP_PASSES = {
    "dynamic_parts": "heavy parts of loops, branches and functions are compiled when they run",
    "fused_lookups": "a lookup of embeddings by sparse ids is one step",
    "common_subexpressions": "nodes that compute the same from the same run once",
    "specialized_kernels": "what follows from constant inputs of small ops is worked out before the run",
    "loop_invariants": "what a round computes of tensors that stay the same is computed in the first round",
    "suppression_on_litert": "NonMaxSuppression of many boxes is LiteRT's",
    "gradients_in_numpy": "gradients of max pools, depthwise, 1x1 and narrow convolutions are NumPy's where large",
    "tiled_gradients": "gradients of wide convolutions by their weights are computed in Winograd's tiles",
    "products_in_numpy": "products of dense layers that are trained are NumPy's",
    "fused_pooled_layers": "a trained convolution with its max pool, and all its gradients, are a step each",
    "fused_rectified_layers": "trained convolutions with rectifier, and all their gradients, are a step each",
    "trained_batch_norms": "batch norms in training, their rectifiers and all their gradients are a step each",
    "changing_weights": "trained convolutions are XNNPACK's, whose packed weights are written anew in each run",
    "step_codegen": "steps that run often are written out as one Python function",
    "direct_calls": "arrays that are known to fit go straight into a part's memory",
    "lent_arrays": "parts that run often take large arrays where they lie, and put large results where they are read",
    "records_together": "Example records of a batch are read a feature of all at a time, or entry by entry",
    "records_by_pattern": "Example records like many before are read by a regular expression that these taught",
    "plain_patterns": "regular expressions that cannot make Python's matcher go back far are given to it",
    "crops_by_products": "CropAndResize multiplies by matrices of weights where that is quicker than pixel by pixel",
    "updates_in_place": "optimizers change large variables where their values lie",
    "kept_heap": "what a step of training frees stays with the process for the next one",
    "recycled_arrays": "large results go into memory of earlier ones that nobody has any more",
}
"""What makes the reference engine's steps fewer or quicker while a program is built."""

INEXACT = frozenset(("tiled_gradients",))
"""Of these, which change results by rounding: the engine ``reference`` does without."""


class PassRow(Record):
    """A pass in the list of all.

    Attributes:
        name: what it is switched off by.
        over: what it changes: ``graph``, ``program`` (of LiteRT operators) or ``steps`` (of the reference engine).
        does: what it does, in a few words.
    """

    name: str
    over: str
    does: str


def all_passes() -> tuple[PassRow, ...]:
    """Every pass once, in the order in which they run first."""
    from pocketgraph.litert.rewriting.optimize import FOR_LATENCY, OPTIMIZE
    from pocketgraph.runtime.planning.graph_passes import BESIDES, PASSES

    rows = [PassRow(name, GRAPH, does) for name, does in BESIDES.items()]
    rows += [PassRow(each.name, GRAPH, each.does) for each in PASSES]
    rows += [PassRow(each.name, PROGRAM, each.does) for each in (*OPTIMIZE, *FOR_LATENCY)]
    rows += [PassRow(name, STEPS, does) for name, does in STEP_PASSES.items()]
    found: dict[str, PassRow] = {}
    for row in rows:
        found.setdefault(row.name, row)
    return tuple(found.values())


def switched_off(names: Collection[str]) -> frozenset[str]:
    """The names of passes to leave out: these, and those of ``POCKETGRAPH_WITHOUT`` (separated by commas).

    Raises:
        UsageError: there is no such pass.
    """
    given = [names] if isinstance(names, str) else list(names)
    given += [name.strip() for name in os.environ.get(ENVIRONMENT, "").split(",") if name.strip()]
    if not given:
        return frozenset()
    known = {row.name for row in all_passes()}
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise UsageError(f"there is no pass '{name}'", hint=hint or f"the passes are {', '.join(sorted(known))}")
    return frozenset(given)
