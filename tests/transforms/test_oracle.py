"""Every rule against what the original tool made of the shared models and of the small graphs in ``original/``."""

from __future__ import annotations

import itertools
import json
import lzma
import pathlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest

from oracle_compare import assert_same_as_original, first_difference, model_graph, models, records
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.text import parse
from pocketgraph.transforms import transform
from support import needs_shared

RULES = {
    "add_default_attributes", "backport_concatv2", "backport_tensor_array_v3", "flatten_atrous_conv",
    "fold_batch_norms", "fold_old_batch_norms", "fuse_pad_and_conv", "fuse_resize_and_conv",
    "fuse_resize_pad_and_conv", "insert_logging", "merge_duplicate_nodes", "obfuscate_names", "quantize_nodes",
    "quantize_weights", "remove_attribute", "remove_control_dependencies", "remove_device", "remove_nodes",
    "rename_attribute", "rename_op", "round_weights", "set_device", "sort_by_execution_order", "sparsify_gather",
    "strip_unused_nodes",
}  # fmt: skip
"""fold_constants alone has a test of its own; the chains that contain it are here."""

CHAINED = RULES | {"fold_constants"}

LARGE = 2000  # nodes: of a model with as many only every second record is compared, with twice as many every third

ORIGINAL = pathlib.Path(__file__).parent / "original"


def rule_names(transforms: Sequence[str]) -> set[str]:
    return {match[0] for text in transforms for match in [re.match(r"\w+", text)] if match}


ON_PURPOSE = {
    "fold_batch_norms": r"nodes are missing|^node",
    "fold_old_batch_norms": r"nodes are missing|^node",
    "quantize_nodes": r"_eightbit/|: op Placeholder|attribute dtype|inputs ",
    "remove_nodes": r"^0 nodes are missing",
    "round_weights": r"attribute value is|: (device|inputs) ",
    "sparsify_gather": r"^1 nodes are missing \['group_deps'\], 0 are too many",
    "strip_unused_nodes": r"attribute (dtype|shape) is",
}
"""How what a rule makes may differ from the records where it does the right thing and not the original's; the rules'
descriptions say why."""

MANY = 400  # nodes: models with more are not run a second time


def run(graph: Graph, record: dict[str, Any], compat: str = "original") -> Graph:
    return transform(graph, record["transforms"], record["inputs"], record["outputs"], compat=compat)


def check(graph: Graph, record: dict[str, Any]) -> None:
    if record["ok"]:
        assert_same_as_original(run(graph, record), record)
    elif record["error"] == "the original tool aborted":
        run(graph, record)  # what it makes of such a graph is its own, but it does not give up
    else:
        with pytest.raises(PocketgraphError) as caught:
            run(graph, record)
        assert "\n" not in str(caught.value)


@needs_shared
@pytest.mark.parametrize("model", models())
def test_a_model_comes_out_as_the_original_made_it(model: str) -> None:

    chosen = itertools.cycle([True] + [False] * (len(model_graph(model)) // LARGE))

    def wanted(transforms: Sequence[str]) -> bool:
        ours = rule_names(transforms) <= RULES or (len(transforms) > 1 and rule_names(transforms) <= CHAINED)
        return ours and next(chosen)

    found = list(records(model, wanted))
    assert found or not list(records(model)), "there are records of this model, but none of these rules"
    for record in found:
        check(model_graph(model), record)


@needs_shared
@pytest.mark.parametrize("model", models())
def test_a_model_comes_out_otherwise_only_where_the_manual_says_so(model: str) -> None:
    if len(model_graph(model)) > MANY:
        pytest.skip("smaller models show the same")
    for record in records(model, lambda transforms: len(transforms) == 1 and rule_names(transforms) <= RULES):
        (rule,) = rule_names(record["transforms"])
        if not record["ok"]:
            continue
        difference = first_difference(run(model_graph(model), record, "fixed"), record)
        assert not difference or re.search(ON_PURPOSE.get(rule, "(?!)"), difference), f"{rule}: {difference}"


@lru_cache(maxsize=1)
def small_records() -> list[dict[str, Any]]:
    with lzma.open(ORIGINAL / "records.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("name", sorted(path.stem for path in ORIGINAL.glob("*.graph")))
def test_a_small_graph_comes_out_as_the_original_made_it(name: str) -> None:
    graph = parse((ORIGINAL / f"{name}.graph").read_text())
    found = [record for record in small_records() if record["model"] == name]
    assert len(found) >= 18
    for record in found:
        if record["ok"] and "round_weights" in record["transforms"][0]:
            # what has no step, because of NaN or infinity, becomes some number there and NaN here
            not_numbers = {name for name in ("nan", "nans", "inf", "ninf", "huge") if name in graph}
            record["nodes"] = [node for node in record["nodes"] if node[0] not in not_numbers]
            check(graph.replace(node for node in graph if node.name not in not_numbers), record)
        else:
            check(graph, record)
