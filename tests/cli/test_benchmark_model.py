"""benchmark_model: flags of both generations, its lines, files, JSON, and what it refuses."""

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import pocketgraph
from command_line import call
from pocketgraph.cli.judge.benchmark_model import command
from pocketgraph.cli.shared.benchmark_inputs import LONGEST, number
from pocketgraph.errors import PocketgraphError, RunError, UsageError
from pocketgraph.formats import save
from pocketgraph.formats.protos import message
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.benchmark_layers import layers_from_graph
from pocketgraph.inspect.timed_program_worker import as_texts, from_texts
from pocketgraph.inspect.timed_programs import _difference

TABLES_OFF = ("--show_run_order=false", "--show_time=false", "--show_memory=false", "--show_type=false",
              "--show_summary=false")  # fmt: skip


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "model.pb"
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 4])
        w = Const(float[4, 3] [[1, 2, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
        product = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        y = Relu(product, T=float)
    """)
    save(graph, path)
    return str(path)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: str) -> PocketgraphError:
    with pytest.raises(PocketgraphError) as caught:
        CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    return caught.value


def test_the_banner_the_phases_and_the_average(model: str) -> None:
    said = run(f"--graph={model}", "--max_num_runs=3", "--num_threads=1", "--engine=reference").output
    lines = said.splitlines()
    assert lines[:13] == [
        f"Graph: [{model}]", "Input layers: [x]", "Input shapes: [1,4]", "Input types: [float]", "Output layers: [y]",
        "Num runs: [3]", "Inter-inference delay (seconds): [-1.0]", "Inter-benchmark delay (seconds): [-1.0]",
        "Num threads: [1]", "Benchmark name: []", "Output prefix: []", "Show sizes: [0]", "Warmup runs: [1]",
    ]  # fmt: skip
    assert lines[13] == "Got config, 0 devices"
    assert lines[14].startswith("Initialized session in ")
    for runs, seconds, how in ((1, -1, "without"), (3, 10, "without"), (3, 10, "with")):
        assert (
            f"Running benchmark for max {runs} iterations, max {seconds} seconds {how} detailed stat logging, "
            "with -1s sleep between inferences" in lines
        )
    assert any(line.startswith("Average inference timings in us: Warmup: ") for line in lines)
    for title in ("Run Order", "Top by Computation Time", "Top by Memory Use", "Summary by node type"):
        assert f"{'=' * 30} {title} {'=' * 30}" in lines
    assert "2 nodes observed" in lines


def test_the_oldest_flags(model: str) -> None:
    assert (number("inf"), number("1e99"), number("nan"), number("x")) == (LONGEST, LONGEST, 0, 0)
    said = run(model, "--num_runs=2", "--run_delay=0.001", *TABLES_OFF).output
    assert "Inter-run delay (seconds): [0.001]" in said
    assert "Warmup runs: [2]" in said
    assert said.count("Running benchmark for 2 iterations without detailed stat logging:") == 2
    assert "Running benchmark for 2 iterations with detailed stat logging:" in said


def test_shapes_types_values_and_sizes(model: str) -> None:
    said = run(
        model, "--input_layer=x", "--input_layer_shape=2,4", "--input_layer_type=float", "--input_layer_values=1,2",
        "--output_layer=y,product:0", "--max_num_runs=1", "--engine=reference", "--show_sizes", *TABLES_OFF,
    ).output  # fmt: skip
    assert "Input shapes: [2,4]" in said
    assert "============ Node output tensor sizes in run order ========\nproduct\t1\tfloat\t2\t2\t3\ny\t1" in said


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--input_layer=x", "--input_layer_shape=1,4:1,4"], "There must be the same number of items in --input_layer"),
        (["--input_layer=x", "--input_layer_shape=1,4", "--input_layer_type=flot"], "flot was an invalid type"),
        (["--input_layer=x", "--input_layer_shape=1,b"], "Incorrect size string specified: 1,b"),
        (["--input_layer=x", "--input_layer_shape=-1,4"], "Any unknown sizes in the shapes (-1's) must be replaced"),
        (
            ["--input_layer=x", "--input_layer_shape=1,4", "--input_layer_values=1,q"],
            "Incorrect initialization values string specified: 1,q",
        ),
        (["--input_layer=x", "--input_layer_shape=1,4", "--input_layer_values=1,2,3,4,5"], "5 values for 4 elements"),
        (["--max_num_runs=0", "--max_time=0"], "a benchmark needs an end"),
        (["--num_runs=0"], "a benchmark needs an end"),
        (["--trace_file=t.txt"], "a trace is written as .json"),
        (["--compare=caffe", "--max_num_runs=1"], "no program 'caffe' to compare with"),
    ],
)
def test_wrong_calls(model: str, flags: list[str], problem: str) -> None:
    error = refused(model, *flags)
    assert isinstance(error, UsageError)
    assert problem in str(error)


def test_failing_models(model: str, tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "none.pb")
    assert str(refused(missing)).startswith(f"{missing}: Could not create TensorFlow Graph: there is no such file")
    error = refused(model, "--input_layer=x", "--input_layer_shape=1,5", "--engine=reference")
    assert isinstance(error, RunError)
    assert "Timing failed with Cannot feed value of shape (1, 5)" in str(error)
    result = CliRunner().invoke(command, [model, "--input_layer=x", "--input_layer_shape=1,5"])
    assert "Failed on run 0\n" in result.output


def test_result_files(model: str, tmp_path: pathlib.Path) -> None:
    prefix = str(tmp_path / "out-")
    named = ["--benchmark_name=group/test", f"--output_prefix={prefix}"]
    flags = [model, "--max_num_runs=4", "--engine=reference", *named]
    said = run(*flags, *TABLES_OFF).output
    assert "Outputting: [MatMul]\nOutputting: [Relu]\n" in said
    stems = ["", "_meta-init", "_meta-first-inference", "_meta-init-plus-first-inference", "_MatMul", "_Relu"]
    assert sorted(p.name for p in tmp_path.glob("out-*")) == sorted(f"out-group__test{stem}" for stem in stems)
    entries: Any = message("tensorflow.BenchmarkEntries")
    (whole,) = entries.FromString((tmp_path / "out-group__test").read_bytes()).entry
    assert (whole.name, whole.iters) == ("group/test", 4)
    assert whole.wall_time > 0
    assert whole.throughput == pytest.approx(16 / whole.wall_time / 2**20)
    (by_type,) = entries.FromString((tmp_path / "out-group__test_MatMul").read_bytes()).entry
    assert by_type.throughput == -1
    assert "Cannot create TestReporter, file exists" in str(refused(*flags))


def test_traces(model: str, tmp_path: pathlib.Path) -> None:
    chrome, stats, metadata = tmp_path / "t.json", tmp_path / "s.bin", tmp_path / "m.pb"
    run(model, "--num_runs=1", f"--trace_file={chrome}", f"--step_stats_name={stats}", "--engine=reference")
    run(model, "--num_runs=1", f"--trace_file={metadata}", "--engine=reference")
    assert "Relu" in [event["name"] for event in json.loads(chrome.read_text())["traceEvents"]]
    found: Any = message("tensorflow.StepStats").FromString(stats.read_bytes())
    labels = [node.timeline_label for node in found.dev_stats[0].node_stats]
    assert labels == ["_SOURCE = NoOp()", "product = MatMul(x, w)", "y = Relu(product)"]
    whole: Any = message("tensorflow.RunMetadata").FromString(metadata.read_bytes())
    assert len(whole.step_stats.dev_stats[0].node_stats) == 3


def test_flops_and_percentiles(model: str) -> None:
    said = run(model, "--max_num_runs=5", "--show_flops", *TABLES_OFF).output
    assert "FLOPs estimate: 24\n" in said  # 1 x 3 outputs, 4 factors each
    assert "FLOPs of all ops: 27\n  MatMul: 24\n  Relu: 3\n" in said
    assert "FLOPs/second: " in said
    assert "Latency percentiles in us: p50 " in said
    assert "Peak memory of the process: " in said


def test_json(model: str) -> None:
    document = json.loads(run(model, "--max_num_runs=3", "--json", "--engine=reference").output)
    assert document["no_stats"]["count"] == 3
    assert document["flops"]["by_op"] == {"MatMul": 24, "Relu": 3}
    assert document["runs_on"] == {"reference": 2}
    assert {node["name"] for node in document["nodes"]} == {"product", "y"}
    assert document["machine"]["usable_processors"] >= 1
    assert set(document["percentiles"]) == {"p50", "p90", "p95", "p99"}
    assert document["inputs"] == [{"name": "x", "dtype": "float", "shape": [1, 4]}]


def test_programs_side_by_side(model: str) -> None:
    document = json.loads(run(model, "--max_num_runs=3", "--json", "--compare=reference,litert,openvino").output)
    reference, litert, openvino = document["compared"]
    assert (reference["problem"], litert["problem"]) == ("", "")
    assert reference["runs"] == 3
    assert litert["difference"] < 1e-6
    assert litert["median_us"] > 0
    assert openvino["problem"] == "" or "not installed" in openvino["problem"]


def test_a_graph_in_a_folder_is_compared_as_it_is(model: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "around" / "deep").mkdir(parents=True)
    shutil.copy(model, tmp_path / "around" / "deep")
    said = run(str(tmp_path / "around"), "--max_num_runs=2", "--json", "--compare=reference,litert").output
    reference, litert = json.loads(said)["compared"]
    assert (reference["problem"], litert["problem"]) == ("", "")
    assert litert["difference"] < 1e-6


@pytest.mark.parametrize("place", ["", "saved_model.pb"])
def test_a_saved_model_is_frozen_for_other_programs(place: str) -> None:
    """Its variables lie in files that they would not find."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "saved_models" / "on_device"
    said = run(
        str(folder / place), "--input_layer=infer_words", "--input_layer_shape=1,5", "--max_num_runs=2", "--json",
        "--compare=reference,auto",
    ).output  # fmt: skip
    reference, auto = json.loads(said)["compared"]
    assert (reference["problem"], auto["problem"]) == ("", "")
    assert auto["difference"] < 1e-5


def test_what_litert_cannot_run_alone_is_compared_as_a_session_runs_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mixed.pb"
    graph = parse("x = Placeholder(dtype=float, shape=[3])\ny = Betainc(x, x, x, T=float)\nz = Exp(y, T=float)")
    save(graph, path)
    said = run(str(path), "--max_num_runs=2", "--json", "--output_layer=z", "--compare=reference,litert,auto").output
    _, litert, auto = json.loads(said)["compared"]
    assert "LiteRT cannot run all of it" in litert["problem"]
    assert auto["problem"] == ""
    assert auto["runs"] == 2
    assert auto["difference"] < 1e-6


def test_csv(model: str) -> None:
    said = run(model, "--num_runs=1", "--format_as_csv").output
    assert "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name\n" in said


@pytest.mark.parametrize("shape", [["--input_layer_shape=10"], []])
def test_nodes_in_loops_count_as_often_as_they_run(shape: list[str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "loop.pb"
    graph = parse("""
        x = Placeholder(dtype=float, shape=[10])
        enter = Enter(x, T=float, frame_name="loop")
        merge = Merge(enter, next, T=float, N=2)
        axis = Const(int32 [0])
        axis_in = Enter(axis, T=int32, frame_name="loop", is_constant=true)
        first = Max(merge, axis_in, T=float, Tidx=int32)
        most = Const(float 100.0)
        bound = Enter(most, T=float, frame_name="loop", is_constant=true)
        less = Less(first, bound, T=float)
        condition = LoopCond(less)
        switch = Switch(merge, condition, T=float)
        body = AddV2(switch:1, switch:1, T=float)
        next = NextIteration(body, T=float)
        leave = Exit(switch, T=float)
    """)
    save(graph, path)
    values = ",".join(["1"] * 10)
    said = run(
        str(path), "--num_runs=2", "--show_flops", "--input_layer=x", *shape,
        f"--input_layer_values={values}", "--output_layer=leave", *TABLES_OFF,
    ).output  # fmt: skip
    # 1 doubles to 128 in 7 steps of 10 additions; 8 comparisons of one value, 8 maxima over 10 (9 comparisons each)
    assert "  AddV2: 70\n" in said
    assert "  Max: 72\n" in said
    assert "  Less: 8\n" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--input_layer_type=float"], "There must be the same number of items"),
        (["--input_layer_values=1"], "--input_layer_values has 1 layer, --input_layer 0"),
        (["--input_layer=x", "--input_layer_type=floot"], "floot was an invalid type"),
        (["--preset=mobilnet"], "there is no preset 'mobilnet'"),
    ],
)
def test_flags_that_would_say_nothing_are_refused(
    flags: list[str], message: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)"), tmp_path / "m.pb")
    assert call("benchmark_model", f"--graph={tmp_path / 'm.pb'}", "--max_num_runs=1", *flags) == 2
    assert message in capsys.readouterr().err


def test_open_sizes_that_fit_the_weights_are_taken_and_told(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("""
        image = Placeholder(dtype=float, shape=[?, ?, ?, 1])
        conv = Conv2D(image, w, T=float, strides=[1, 1, 1, 1], padding="SAME", data_format="NHWC")
        w = Const(float[1, 1, 1, 1] [[[[2]]]])
        axes = Const(int32 [1, 2])
        y = Mean(conv, axes, T=float, Tidx=int32)
    """)
    save(graph, tmp_path / "gray.pb")
    assert call("benchmark_model", tmp_path / "gray.pb", "--max_num_runs=1") == 0
    said = capsys.readouterr()
    assert "'image' [?,?,?,1]" in said.err
    assert "--input_layer=image --input_layer_shape=1,224,224,1" in said.err
    assert "Input shapes: [1,224,224,1]" in said.out


def test_open_sizes_are_asked_for_with_the_flags_to_pass(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "open.pb"
    graph = parse("""
        image = Placeholder(dtype=float, shape=[?, ?, 3])
        scale = Placeholder(dtype=float)
        unused = Placeholder(dtype=float)
        y = Mul(image, scale, T=float)
    """)
    save(graph, path)
    error = refused(str(path))
    assert "the graph does not fix the size of input 'image' ([?,?,3])" in str(error)
    assert error.hint.startswith("pass --input_layer=image,scale --input_layer_shape=1,?,3:? with sizes")


LENET = """
    x = Placeholder(dtype=float)
    keep = Placeholder(dtype=float)
    hidden = MatMul(x, v, T=float)
    v = Const(float[3, 4] [[1, 2, 3, 4], [1, 1, 1, 1], [1, 1, 1, 1]])
    sizes = Const(int32 [1, 4])
    drawn = RandomUniform(sizes, T=int32, dtype=float, seed=0, seed2=0)
    sum = Add(drawn, keep, T=float)
    mask = Floor(sum, T=float)
    scaled = RealDiv(hidden, keep, T=float)
    dropped = Mul(scaled, mask, T=float)
    w = Const(float[4, 2] [[1, 2], [1, 1], [1, 1], [1, 1]])
    y = MatMul(dropped, w, T=float)
"""


def test_sizes_that_weights_tell_are_taken_and_shares_of_dropouts_fed(tmp_path: pathlib.Path, capsys: Any) -> None:
    """The flags that are told run as they stand, and need no word on what training alone feeds."""
    path = tmp_path / "lenet.pb"
    save(parse(LENET), path)
    assert call("benchmark_model", path, "--num_runs=1", *TABLES_OFF) == 0
    told = capsys.readouterr()
    flags = [word for word in told.err.split() if word.startswith("--")]
    assert flags == ["--input_layer=x", "--input_layer_shape=1,3"]
    assert call("benchmark_model", path, *flags, "--num_runs=1", *TABLES_OFF) == 0
    assert told.out.count("Input layers: [x,keep]") == capsys.readouterr().out.count("Input layers: [x,keep]") == 1


def test_targets_run_without_outputs_when_told_so(model: str) -> None:
    said = json.loads(
        run(model, "--target_layer=product", "--output_layer=", "--num_runs=1", "--json", "--engine=reference").output
    )
    assert said["outputs"] == []
    assert [node["name"] for node in said["nodes"]] == ["product"]
    assert said["flops"]["by_op"] == {"MatMul": 24}
    assert "name it with --output_layer" in str(
        refused(model, "--target_layer=product", "--output_layer=", "--compare=reference")
    )


def test_an_empty_output_layer_without_targets_is_none_given(model: str) -> None:
    assert json.loads(run(model, "--output_layer=", "--num_runs=1", "--json").output)["outputs"] == ["y"]


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--compare=foo", "there is no program 'foo' to compare with"),
        ("--trace_file={}/none/run.json", "the directory to write to does not exist"),
        ("--step_stats_name={}/none/run.pb", "the directory to write to does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_measured(
    model: str, tmp_path: pathlib.Path, flag: str, problem: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pocketgraph.inspect.benchmark.time_session", lambda *_: pytest.fail("it was measured"))
        assert problem in str(refused(model, flag.format(tmp_path)))


def test_texts_are_compared_too(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "texts.pb"
    graph = parse("s = Placeholder(dtype=string, shape=[2])\nlow = StringLower(s)\nsizes = StringLength(s)")
    save(graph, path)
    said = run(str(path), "--max_num_runs=2", "--json", "--output_layer=low,sizes", "--compare=reference,auto").output
    reference, auto = json.loads(said)["compared"]
    assert (reference["problem"], auto["problem"], auto["difference"]) == ("", "", 0)
    texts = np.array([[b"a\0", "\u00e4"], [b"", b"\xff"]], object)
    back = from_texts(as_texts(texts))
    assert back.tolist() == [[b"a\0", "\u00e4".encode()], [b"", b"\xff"]]


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ([1.0, 2.0], [1.0, 1.5], 0.25),
        ([1.0, np.nan], [1.0, np.nan], 0),
        ([4.0, np.inf], [3.0, np.inf], 0.25),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, -np.inf], [1.0, np.inf], np.inf),
        ([1 + 2j, 0], [1 - 2j, 0], 4 / abs(1 + 2j)),
        ([1.0], [1.0, 2.0], np.inf),
        (["61"], ["61"], 0),
        (["61"], ["62"], np.inf),
        (["61"], [1], np.inf),
        ([], [], 0),
        ([True, False], [True, True], 1),
    ],
)
def test_how_far_results_are_apart(one: Any, other: Any, difference: float) -> None:
    assert _difference(np.array(one), np.array(other)) == pytest.approx(difference)


def test_pictures_of_zeros_are_spread_when_programs_are_compared() -> None:
    from pocketgraph.inspect.timed_programs import _spread

    spread = _spread(np.zeros((1, 8, 8, 3), np.uint8))
    assert (spread.dtype, spread.shape) == (np.uint8, (1, 8, 8, 3))
    assert len(np.unique(spread)) > 50
    ids = np.zeros(4, np.int32)
    assert _spread(ids) is ids


def test_nodes_of_an_onnx_file_have_times(tmp_path: pathlib.Path, capsys: Any) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from pocketgraph.exporting import export

    graph = parse("x = Placeholder(dtype=float, shape=[64, 64])\ny = Tanh(x, T=float)\nz = Softmax(y, T=float)")
    export(graph, tmp_path / "model.onnx")
    assert call("benchmark_model", tmp_path / "model.onnx", "--json", "--max_num_runs=3") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"onnx.Tanh", "onnx.Softmax"} <= set(found["by_type"])
    assert 0 < sum(node["average"] for node in found["nodes"]) <= found["with_stats"]["max"] * 1.001
    assert found["nodes"][0]["memory"] == 64 * 64 * 4


def test_a_string_layer_whose_shape_is_given_is_fed_a_file_where_one_is_decoded(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(parse("file = Placeholder(dtype=string)\n pixels = DecodePng(file, channels=3)"), tmp_path / "reads.pb")
    flags = ["--input_layer=file", "--input_layer_shape=", "--input_layer_type=string", "--output_layer=pixels"]
    assert call("benchmark_model", f"--graph={tmp_path / 'reads.pb'}", *flags, "--max_num_runs=1") == 0
    assert "DecodePng" in capsys.readouterr().out


def test_an_input_without_dimensions_is_fed_a_number(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        k = Placeholder(dtype=float, shape=[])
        w = Const(float[8,4] 0.5)
        m = MatMul(x, w, T=float)
        y = Mul(m, k, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    pocketgraph.export(tmp_path / "net.pb", tmp_path / "net.tflite")
    for name in ("net.pb", "net.tflite"):
        assert pocketgraph.benchmark(tmp_path / name, max_runs=2).plain.count == 2


@pytest.mark.parametrize("filled", ["constants", "file"])
def test_texts_that_are_looked_up_are_words(filled: str) -> None:
    """Without any a recurrent encoder has no steps, of which TensorFlow stacks nothing."""
    fills = {
        "constants": "fill = LookupTableImportV2(table, words, places, Tin=string, Tout=int64)",
        "file": 'name = Const(string "vocab.txt")\nfill = InitializeTableFromTextFileV2(table, name, key_index=-2, '
        "value_index=-1)",
    }
    graph = parse(f"""
        text = Placeholder(dtype=string, shape=[?])
        blank = Const(string " ")
        split = StringSplit(text, blank, skip_empty=true)
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        words = Const(string ["up", "down"])
        places = Const(int64 [0, 1])
        none = Const(int64 -1)
        {fills[filled]}
        found = LookupTableFindV2(table, split:1, none, ^fill, Tin=string, Tout=int64)
    """)
    (layer,) = layers_from_graph(graph, ["text"])
    assert len(layer.text.split()) >= 3
    assert ({*layer.text.split()} <= {b"up", b"down"}) == (filled == "constants")
