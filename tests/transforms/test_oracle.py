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
from pocketgraph.graph.text_format import parse
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


FOLDED_FURTHER = {"enet_segmentation", "kws_ds_cnn_s", "music_score_classifier", "poets_optimized_128", "smile_tfdroid"}
OWN_TYPE_OR_SHAPE = {"faced_corrector", "mbti_model", "utensor_adl_deep_mlp", "utensor_mnist_demo"}
NEGATIVE = {"enet_segmentation", "faced_corrector", "mobilenet_v1_025_128", "poets_optimized_128",
            "poets_retrained_128", "pose_mobilenet_v2_small", "tfl_quantized_graph"}  # fmt: skip
ON_PURPOSE = {
    "fold_batch_norms": (FOLDED_FURTHER, r"nodes are missing"),
    "fold_old_batch_norms": (FOLDED_FURTHER, r"nodes are missing"),
    "quantize_nodes": (None, r"_eightbit/"),  # placeholders that are no floats
    "remove_control_dependencies": (None, r"inputs \['\^.*\], not \[\]"),  # what holds constants in a branch or loop
    "remove_nodes": ({"mtcnn_blaueck"}, r"^0 nodes are missing"),
    "round_weights": (NEGATIVE, r"attribute value is"),
    "strip_unused_nodes": (OWN_TYPE_OR_SHAPE, r"attribute (dtype|shape) is"),
}
"""On which models (None: any), and how, what a rule makes differs from the records because it does the right thing and
not the original's, or more; the rules' descriptions say why. Chains differ where one of their rules does."""

MANY = 400  # nodes: models with more are not run a second time


def run(graph: Graph, record: dict[str, Any], compat: str = "original") -> Graph:
    return transform(graph, record["transforms"], record["inputs"], record["outputs"], compat=compat)


def check(graph: Graph, record: dict[str, Any]) -> None:
    if record["ok"]:
        assert_same_as_original(run(graph, record), record)
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
    for record in records(model, lambda transforms: rule_names(transforms) <= CHAINED):
        if not record["ok"]:
            continue
        known = {rule: ON_PURPOSE[rule] for rule in rule_names(record["transforms"]) & ON_PURPOSE.keys()}
        known = {rule: how for rule, (where, how) in known.items() if where is None or model in where}
        expected = loadable(record, model_graph(model))
        difference = first_difference(run(model_graph(model), record, "fixed"), expected)
        allowed = bool(known) and (len(record["transforms"]) > 1 or re.search(next(iter(known.values())), difference))
        assert not difference or allowed, f"{record['transforms']}: {difference}"


def loadable(record: dict[str, Any], before: Graph) -> dict[str, Any]:
    """The record without colocations with nodes that its rules dropped, with which TensorFlow loads no graph."""
    gone = before.nodes.keys() - {node[0] for node in record["nodes"]}

    def kept(attrs: dict[str, Any]) -> dict[str, Any]:
        targets = re.findall(r'loc:@([^"]+)"', str(attrs.get("_class", "")))
        return {key: value for key, value in attrs.items() if key != "_class" or not targets or not gone >= {*targets}}

    return {**record, "nodes": [[*node[:4], kept(node[4])] for node in record["nodes"]]}


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
        check(graph, record)
