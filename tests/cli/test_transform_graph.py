"""``pocketgraph transform_graph``: the original flags, what it writes, and its one-line errors."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np
import pytest

import command_line
from pocketgraph import formats
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.inspect import transform_outcome
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

GRAPH = """
    x = Placeholder(dtype=float, shape=[2]) @"/gpu:0"
    kept = Identity(x, T=float)
    softmax = Softmax(kept, T=float)
"""
RESULT = "x = Placeholder(dtype=float, shape=[2])\nsoftmax = Softmax(x, T=float)\n"


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "model.pb"
    formats.save(parse(GRAPH), path)
    return str(path)


def call(*arguments: str) -> int:
    return command_line.call("transform_graph", *arguments)


def test_the_original_flags(model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.pb"
    code = call(
        f"--in_graph={model}", f"--out_graph={out}", "--inputs=x", "--outputs=softmax",
        "--transforms=\n remove_nodes(op=Identity)\n remove_device\n",
    )  # fmt: skip
    assert code == 0
    assert print_graph(formats.load(out)) == RESULT
    assert capsys.readouterr() == ("", "3 nodes, 121 B -> 2 nodes, 80 B\n")


def test_short_forms_and_the_log(model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.pb"
    steps = "remove_device strip_unused_nodes(shape=bad, ignore_errors=true) remove_nodes(op=Identity)"
    assert call(model, "-o", str(out), "--inputs", "kept", "--outputs", "softmax", "-t", steps, "-v") == 0
    assert capsys.readouterr().err.splitlines() == [
        "Applying remove_device",
        "Applying strip_unused_nodes",
        "warning: strip_unused_nodes: Ignoring error Could not parse as shape: 'bad'; write every size, such as "
        '"1,299,299,3", or ? for one that is not known; the graph is as it was before this rule',
        "Applying remove_nodes",
        "3 nodes, 121 B -> 3 nodes, 113 B",
    ]


def layered(tmp_path: pathlib.Path, spread: float = 3.0) -> str:
    """A network of two layers: the first has most parameters, and channels of `spread` powers of ten up and down."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        a = MatMul(x, first, T=float)
        middle = Relu(a, T=float)
        y = MatMul(middle, second, T=float)
    """)
    first = rng.normal(0, 1, (8, 512)) * np.logspace(-spread, spread, 512)
    second = rng.normal(0, 1, (512, 2)) / np.logspace(-spread, spread, 512)[:, np.newaxis]
    path = tmp_path / "layers.pb"
    weights = [const("first", first.astype(np.float32)), const("second", second.astype(np.float32))]
    formats.save(Graph([*graph, *weights]), path)
    return str(path)


def _decibels(first: Session, second: Session, feeds: Mapping[str, np.ndarray]) -> float:
    clean, rounded = (session.run(["y"], feeds)[0].astype(np.float64) for session in (first, second))
    return float(10 * np.log10(np.square(clean).sum() / np.square(clean - rounded).sum()))


def test_little_left_of_the_results_is_a_warning(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = layered(tmp_path)
    assert call(model, "-o", str(tmp_path / "out.pb"), "--inputs=x", "--outputs=y", "-t", "quantize_weights") == 0
    told = capsys.readouterr().err
    assert "4 nodes" not in told
    assert "dB on random inputs" in told
    assert "warning: less than 20 dB are left" in told
    even = layered(tmp_path, spread=0)
    assert call(even, "-o", str(tmp_path / "out.pb"), "--inputs=x", "--outputs=y", "-t", "quantize_weights") == 0
    told = capsys.readouterr().err
    assert "dB on random inputs; real ones may keep less" in told
    assert "warning" not in told
    graph, coarse = (formats.load(path).replace(inputs=("x",), outputs=("y",)) for path in (even, tmp_path / "out.pb"))
    with Session(graph) as first, Session(coarse) as second:  # not each keeps as little
        left = [_decibels(first, second, synthetic_feeds(graph, ["y"], seed)) for seed in range(4)]
    assert f"signal to noise {min(left):.1f} dB" in told
    assert min(left) < left[0]


def test_inputs_that_a_graph_refuses_leave_what_others_told() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[4])
        zero = Const(int32 0)
        first = Max(x, zero, T=float, Tidx=int32, keep_dims=false)
        most = Const(float 0.7)
        fits = Less(first, most, T=float)
        checked = Assert(fits, first, T=[float])
        y = Mul(x, factor, ^checked, T=float)
        factor = Const(float 2.0)
    """
    before, after = (parse(each).replace(inputs=["x"], outputs=["y"]) for each in (text, text.replace("2.0", "2.02")))
    with Session(before) as session, pytest.raises(RunError, match=r"(?i)assert"):
        session.run(["y"], synthetic_feeds(before, ["y"], 1))
    assert transform_outcome.decibels_left(before, after) == pytest.approx(40, abs=0.1)


def test_what_is_left_of_a_graph_of_many_nodes_is_told_without_planning_them(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell() -> str:
        call(layered(tmp_path), "-o", str(tmp_path / "out.pb"), "--inputs=x", "--outputs=y", "-t", "quantize_weights")
        return capsys.readouterr().err

    def noted(graph: Graph, engine: str | None = None) -> Session:
        engines.append(engine)
        return Session(graph, engine=engine)

    engines: list[str | None] = []
    monkeypatch.setattr(transform_outcome, "Session", noted)
    monkeypatch.setattr(transform_outcome, "INPUTS", 1)
    planned = tell()
    assert "dB on random inputs" in planned
    monkeypatch.setattr(transform_outcome, "MOST_NODES", 0)
    assert planned == tell()
    assert engines == [None, None, "reference", "reference"]


def test_a_shape_that_is_not_used_is_told(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = layered(tmp_path)
    for shape, is_told in (("1,9", True), ("1,8", False)):
        steps = f'strip_unused_nodes(shape="{shape}", type=float)'
        assert call(model, "-o", str(tmp_path / "out.pb"), "--inputs=x", "--outputs=y", "-t", steps) == 0
        assert (f"the shape {shape} is not used, the placeholder 'x' has [1,8]" in capsys.readouterr().err) == is_told


def test_inputs_that_cut_off_most_of_the_network_are_refused(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = layered(tmp_path), tmp_path / "out.pb"
    ends = ("--inputs=middle", "--outputs=y", "-t", "strip_unused_nodes")
    assert call(model, "-o", str(out), *ends) == 2
    told = capsys.readouterr().err
    assert "need 1,024 of 5,120 parameters" in told
    assert "--inputs=x keeps them" in told
    assert not out.exists()
    assert call(model, "-o", str(out), "--partial", *ends) == 0
    assert len(formats.load(out)) == 3


def test_output_as_text(model: str, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out.pbtxt"
    steps = "--transforms=remove_device remove_nodes(op=Identity)"
    assert call(f"--in_graph={model}", f"--out_graph={out}", steps, "--output_as_text=true") == 0
    assert out.read_text().startswith("node {\n")
    assert print_graph(formats.load(out)) == RESULT


def test_the_home_folder_is_expanded(model: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert call("--in_graph=~/model.pb", "--out_graph=~/out.pb", "--transforms=remove_device") == 0
    assert (tmp_path / "out.pb").exists()


def test_the_input_may_be_replaced(model: str) -> None:
    assert call(model, "-o", model, "-t", "remove_device remove_nodes(op=Identity)") == 0
    assert print_graph(formats.load(model)) == RESULT


def test_an_unknown_input_is_an_error_but_not_for_the_original(
    model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_it = (model, "-o", str(tmp_path / "out.pb"), "--inputs=xx", "-t", "remove_device")
    assert call(*call_it) == 2
    assert capsys.readouterr().err.startswith("error: --inputs: the graph has no node 'xx'")
    assert not (tmp_path / "out.pb").exists()
    assert call(*call_it, "--compat=original") == 0
    assert capsys.readouterr().err.startswith("warning: --inputs: the graph has no node 'xx'")


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"--in_graph": ""}, 2, "in_graph graph can't be empty"),
        ({"--out_graph": ""}, 2, "out_graph graph can't be empty"),
        ({"--transforms": ""}, 2, "You must specify at least one transform"),
        ({"--transforms": " \n"}, 2, "You must specify at least one transform"),
        ({"--transforms": "f(a=1"}, 2, "Failed to parse --transforms argument, error was"),
        ({"--transforms": "remove_device)"}, 2, "Looking for transform name, but found ')'"),
        (
            {"--transforms": "remove_devices"},
            2,
            "Transform 'remove_devices' not recognized; did you mean 'remove_device",
        ),
        ({"--transforms": "remove_device(a=1)"}, 2, "remove_device: unknown parameter 'a'"),
        ({"--transforms": "quantize_weights(minimum_size=x)"}, 2, "couldn't interpret the minimum_size argument"),
        (
            {"--transforms": "strip_unused_nodes(shape=x)", "--outputs": "softmax"},
            1,
            "strip_unused_nodes: Could not parse as shape: 'x'",
        ),
        (
            {"--transforms": "smallest"},
            1,
            "no output is named, and only what outputs need is kept; name it with --outputs",
        ),
        ({"--outputs": "sofmax"}, 2, "--outputs: the graph has no node 'sofmax'; did you mean 'softmax'"),
        ({"--in_graph": "/nothing/here.pb"}, 1, "Loading graph '/nothing/here.pb' failed with"),
        ({"--out_graph": "/nothing/here.pb"}, 1, "Saving graph '/nothing/here.pb' failed with"),
        ({"--output_as_text": "maybe"}, 2, "neither true nor false"),
        ({"--in_grap": "x"}, 2, "--in_grap"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(
    change: dict[str, str],
    code: int,
    message: str,
    model: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.pb"
    flags = {"--in_graph": model, "--out_graph": str(out), "--transforms": "remove_device", "--inputs": "kept"} | change
    assert call(*(f"{key}={value}" for key, value in flags.items())) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not out.exists()


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short.pb"
    short.write_bytes(pathlib.Path(model).read_bytes()[:-7])
    empty = tmp_path / "empty.pb"
    empty.write_bytes(b"")
    for path in (short, empty):
        assert call(str(path), "-o", str(tmp_path / "out.pb"), "-t", "remove_device") == 1
        assert capsys.readouterr().err.startswith(f"error: Loading graph '{path}' failed with ")
    assert not (tmp_path / "out.pb").exists()


def test_help_names_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    shown = capsys.readouterr().out
    assert "Transforms are:" in shown
    assert "fold_old_batch_norms" in shown
    assert "--output_as_text" in shown


def test_a_scaling_of_pixels_that_is_folded_is_told(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        of_bytes = Const(float 0.003921569)
        shares = Mul(x, of_bytes, T=float)
        conv = Conv2D(shares, w, T=float, strides=[1, 1, 1, 1], padding="SAME", data_format="NHWC")
        rectified = Relu(conv, T=float)
        axes = Const(int32 [1, 2])
        pooled = Mean(rectified, axes, T=float, Tidx=int32, keep_dims=false)
        y = Softmax(pooled, T=float)
    """)
    weights = np.random.default_rng(4).normal(size=(3, 3, 3, 4)).astype(np.float32)
    formats.save(Graph([*net, const("w", weights)]), tmp_path / "net.pb")
    for transforms, is_told in (("mobile", True), ("strip_unused_nodes", False)):
        ends = ("-o", str(tmp_path / "small.pb"), "--inputs=x", "--outputs=y", f"--transforms={transforms}")
        assert call(str(tmp_path / "net.pb"), *ends) == 0
        told = capsys.readouterr().err
        assert ("'shares', which told how pixels are scaled, is part of the first layer now" in told) is is_told
        assert ("--input_mean=0 --input_std=1" in told) is is_told
