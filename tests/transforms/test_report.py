"""The record of what each rule did, and the reasons for what it left alone."""

from __future__ import annotations

import json

import pytest

from pocketgraph import formats
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.transform_page import as_html, as_json
from pocketgraph.transforms import tool
from pocketgraph.transforms.transform_report import Recorder, RuleEntry

GRAPH = """
    x = Placeholder(dtype=float, shape=[1,2])
    kept = Identity(x, T=float) @"/gpu:0"
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    product = MatMul(kept, w, T=float)
    scale = Const(float [2.0, 3.0])
    y = Mul(product, scale, T=float)
"""


def recorded(text: str, transforms: str) -> tuple[Graph, list[RuleEntry]]:
    recorder = Recorder()
    graph = tool.run(parse(text, inputs=["x"], outputs=["y"]), transforms, observe=recorder)
    return graph, recorder.entries


def test_what_each_rule_did() -> None:
    graph, (device, nodes, norms) = recorded(GRAPH, "remove_device remove_nodes(op=Identity) fold_batch_norms")
    assert (device.changed, device.removed, device.added, device.rewired) == (("kept",), (), (), ())
    assert (nodes.removed, nodes.rewired, nodes.changed) == (("kept",), ("product",), ())
    assert nodes.arguments == {"op": ("Identity",), "max_inputs": 1} or nodes.arguments == {"op": ("Identity",)}
    assert set(norms.removed) == {"product", "scale"}
    assert norms.rewired == ("y",)
    assert set(norms.changed) == {"w", "y"}
    assert norms.nodes == (5, 3)
    assert device.bytes[0] == len(formats.to_bytes(parse(GRAPH)))
    assert device.bytes[1] == nodes.bytes[0]
    assert norms.bytes[1] == len(formats.to_bytes(graph))


def test_as_json() -> None:
    data = json.loads(as_json(recorded(GRAPH, "remove_nodes(op=Identity) quantize_weights")[1], "model.pb"))
    assert data["model"] == "model.pb"
    first, second = data["rules"]
    assert first["removed"] == ["kept"]
    assert first["arguments"]["op"] == ["Identity"]
    assert [miss["node"] for miss in second["near_misses"]] == ["w", "scale"]
    assert second["near_misses"][0]["why"] == "4 elements are fewer than minimum_size=1024"


def test_the_steps_of_a_preset() -> None:
    _, (mobile,) = recorded(GRAPH, "mobile")
    names = [step.rule for step in mobile.steps]
    assert names[:3] == ["strip_unused_nodes", "remove_device", "remove_attribute"]
    assert names[-1] == "sort_by_execution_order"
    assert mobile.nodes == (6, 3)
    (norms, *_) = (step for step in mobile.steps if step.rule == "fold_batch_norms")
    assert "scale" in norms.removed
    data = json.loads(as_json([mobile], "model.pb"))
    assert [step["rule"] for step in data["rules"][0]["steps"]] == names
    page = as_html([mobile], "model.pb")
    assert page.count("<h2 ") == len(names) + 1
    assert '<div style="padding-left:1em"><a' in page


def test_as_html_names_are_escaped() -> None:
    _, entries = recorded(GRAPH, "remove_nodes(op=Identity)")
    page = as_html(entries, "<script>.pb")
    assert page.count("<script>") == 1, "the page's own"
    assert "&lt;script&gt;.pb" in page
    assert "remove_nodes(op=Identity" in page
    assert "<li>kept" in page


CONV = 'c = Conv2D({source}, w, T=float, strides=[1,1,1,1], padding="SAME"{more})'
NORM = """
    x = Placeholder(dtype=float)
    w = Const(float [[[[2.0]]]])
    g = Const(float [2.0])
    {conv}
    {between}
    y = FusedBatchNormV3({norm}, g, g, g, g, T=float, U=float, epsilon=0.1{last})
"""


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (NORM.format(conv=CONV.format(source="x", more=""), between="z = Relu(c, T=float)", norm="c", last=""),
         "the Conv2D 'c' is also read by 'z'"),
        (NORM.format(conv="", between="z = Relu(x, T=float)", norm="z", last=""),
         "no convolution is next to it (before it: Relu)"),
        (NORM.format(conv=CONV.format(source="x", more=""), between="z = Identity(c, T=float)", norm="z", last=""),
         "an Identity stands before it"),
        (NORM.format(conv=CONV.format(source="x", more=', data_format="NCHW"'), between="", norm="c", last=""),
         "its data_format is not that of 'c'"),
        (NORM.format(conv=CONV.format(source="x", more="").replace("w,", "x,"), between="", norm="c", last=""),
         "weights are not constant: they come from Placeholder 'x'"),
    ],
)  # fmt: skip
def test_why_a_normalization_stays(graph: str, why: str) -> None:
    _, [entry] = recorded(graph, "fold_old_batch_norms")
    assert [(miss.node, miss.why) for miss in entry.misses] == [("y", why)]


@pytest.mark.parametrize(
    ("rule", "before", "more", "why"),
    [
        ("fuse_pad_and_conv", 'p = MirrorPad(x, s, T=float, mode="REFLECT")', ', data_format="NCHW"', "it is NCHW"),
        ("fuse_pad_and_conv", 'p = MirrorPad(x, s, T=float, mode="REFLECT")', ", dilations=[1,2,2,1]", "it is dilated"),
        ("fuse_resize_and_conv", "p = ResizeNearestNeighbor(x, s, T=float)", "", "ResizeNearestNeighbor 'p', not"),
        (
            "fuse_resize_and_conv",
            "p = ResizeBilinear(x, s, T=float, half_pixel_centers=true)",
            "",
            "half_pixel_centers",
        ),
    ],
)
def test_why_a_convolution_is_not_fused(rule: str, before: str, more: str, why: str) -> None:
    text = f"""
        x = Placeholder(dtype=float)
        s = Const(int32 [4, 4])
        w = Const(float [[[[2.0]]]])
        {before}
        {CONV.format(source="p", more=more)}
        y = Relu(c, T=float)
    """
    _, [entry] = recorded(text, rule)
    assert [miss.node for miss in entry.misses] == ["c"]
    assert why in entry.misses[0].why


def test_rules_without_explanations_have_none() -> None:
    assert tool.find("remove_device").near_misses(parse(GRAPH), {}) == []
