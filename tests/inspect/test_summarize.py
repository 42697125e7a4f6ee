"""The original report, line by line, and the facts behind the tables."""

import json

import pytest

import pocketgraph
from function_text import with_functions
from pocketgraph.cli.main import main
from pocketgraph.errors import GraphError
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.summarize import original_report, structure, summarize
from support import model_dir, model_info, needs_shared

SMALL = """
    x = Placeholder(dtype=float, shape=[?,4])
    flag = Placeholder(dtype=bool, shape=[])
    late = Placeholder(dtype=int32)
    w = Const(float [[1, 2], [3, 4], [5, 6], [7, 8]])
    v = VariableV2(dtype=float, shape=[2])
    mul = MatMul(x, w, T=float) @"/cpu:0"
    out = Relu(mul, ^flag, T=float) @"/cpu:0"
    init = NoOp(^v)
"""


def test_the_report_is_the_originals() -> None:
    """Expected text written by hand from the original tool's format; trailing blanks are its own."""
    assert list(original_report(parse(SMALL), "m.pb")) == [
        "Found 3 possible inputs: (name=x, type=float(1), shape=[?,4]) (name=flag, type=bool(10), shape=[]) "
        "(name=late, type=int32(3), shape=None) ",
        "Found 1 variables: (name=v, type=float(1), shape=[2]) ",
        "Found 1 possible outputs: (name=out, op=Relu) ",
        "Found 8 (8) const parameters, 0 (0) variable parameters, and 2 control_edges",
        "2 nodes assigned to device '/cpu:0'",
        "Op types used: 3 Placeholder, 1 Const, 1 MatMul, 1 NoOp, 1 Relu, 1 VariableV2",
        "To use with tensorflow/tools/benchmark:benchmark_model try these arguments:",
        "bazel run tensorflow/tools/benchmark:benchmark_model -- --graph=m.pb --show_flops "
        "--input_layer=x,flag,late,v --input_layer_type=float,bool,int32,float --input_layer_shape=-1,4:::2 "
        "--output_layer=out",
    ]


def test_nothing_found() -> None:
    lines = list(original_report(parse("c = Const(float 1)"), "c.pb"))
    assert lines[:3] == ["No inputs spotted.", "No variables spotted.", "No outputs spotted."]


def test_structure_is_in_execution_order() -> None:
    lines = list(structure(parse(SMALL)))
    assert "mul (MatMul): [x, w]" in lines
    assert "w (Const): [], value=Tensor<type: float shape: [4,2] values: [1 2][3...]...>" in lines
    assert lines.index("mul (MatMul): [x, w]") < lines.index("out (Relu): [mul, ^flag]")


def test_dangling_inputs_are_named_and_then_refused() -> None:
    report = original_report(parse("y = Relu(gone, T=float)"), "y.pb")
    lines = []
    with pytest.raises(GraphError, match="nonexistent"):
        for line in report:
            lines.append(line)  # noqa: PERF402  the lines before the error are wanted
    assert lines[-1] == "Invalid input gone for node y"


@needs_shared
@pytest.mark.parametrize(
    "name", ["mobilenet_v1_025_128", "mtcnn_blaueck", "pose_mobilenet_v2_small", "faced_corrector", "federated_graph"]
)
def test_counts_of_real_models(name: str) -> None:
    info = model_info(name)
    graph = pocketgraph.load(model_dir(name) / info["file"])
    facts = summarize(graph)
    assert len(graph) == info["nodes"]
    bodies = dict(facts.op_counts)
    for op, count in info["ops"].items():
        assert bodies[op] >= count


@needs_shared
@pytest.mark.parametrize(
    "name", ["mobilenet_v1_025_128", "poets_retrained_128", "mnist_panjinquan", "pose_mobilenet_v2_small", "espcn_x3"]
)
def test_the_first_output_is_the_models(name: str) -> None:
    info = model_info(name)
    facts = pocketgraph.summarize(pocketgraph.load(model_dir(name) / info["file"]))
    wanted = {output.split(":")[0] for output in info["outputs"]}
    assert facts.outputs[0].name in wanted
    fed = {name.split(":")[0] for name in info["inputs"]}
    assert fed >= {e.name for e in facts.inputs[:1]}
    assert facts.outputs[0].dtype is not None


@needs_shared
def test_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(model_dir("mobilenet_v1_025_128") / "frozen_graph.pb")
    with pytest.raises(SystemExit) as stop:
        main(["summarize", path, "--json"])
    assert not stop.value.code
    facts = json.loads(capsys.readouterr().out)
    first = facts["inputs"][0]
    assert (first["name"], first["op"], first["dtype"], first["shape"]) == (
        "input",
        "Placeholder",
        "float",
        [1, 128, 128, 3],
    )
    assert facts["outputs"][0]["shape"] == [1, 1001]
    assert facts["ops"]["Conv2D"] == 15


def test_results_of_calls_have_the_shapes_that_their_functions_give() -> None:
    body = """
        body(given: float) -> wide: float = product:product:0, tall: float = sums:output:0
        w = Const(float [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        product = MatMul(given, w:output:0, T=float)
        axis = Const(int32 [0])
        sums = Sum(given, axis:output:0, T=float, keep_dims=false)
    """
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        both = PartitionedCall(x, Tin=[float], Tout=[float, float], f=func(body))
    """).replace(outputs=["both:0", "both:1"])
    facts = summarize(with_functions(graph, body.strip().splitlines()))
    assert [str(found.shape) for found in facts.outputs[:2]] == ["[?,2]", "[3]"]
