"""The commands that ``summarize`` proposes: they fit the form of the model, and work when they are pasted."""

from __future__ import annotations

import json
import pathlib
import shlex
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.exporting import export
from pocketgraph.formats import load, save
from pocketgraph.graph import Signature
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared

TABLES = pathlib.Path(__file__).parent.parent / "fixtures" / "saved_models_with_tables"


def proposed(model: object, capsys: Any) -> list[list[str]]:
    assert call("summarize", model) == 0
    lines = capsys.readouterr().out.partition("next:\n")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines]


def test_a_saved_model_has_its_values_itself(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    freeze, *others = proposed(TABLES / "tf2", capsys)
    assert not any(argument.startswith("--input_checkpoint") for argument in freeze)
    assert call(*freeze) == 0
    assert (tmp_path / "frozen.pb").exists()
    for command in others:
        assert call(*command) == 0, command


def test_the_signatures_of_a_saved_model_are_listed(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)\nz = Exp(x, T=float)")
    signature = Signature({"image": "x:0"}, {"scores": "y:0", "best": "z:0"})
    save(graph.replace(signatures={"serving_default": signature}), tmp_path / "served", form="saved_model")
    assert call("summarize", tmp_path / "served") == 0
    assert "\nsignature serving_default: image = x:0 -> best = z:0, scores = y:0\n" in capsys.readouterr().out
    assert call("summarize", tmp_path / "served", "--json") == 0
    stated = json.loads(capsys.readouterr().out)["signatures"]["serving_default"]
    assert stated == {"inputs": {"image": "x:0"}, "outputs": {"best": "z:0", "scores": "y:0"}}


@pytest.mark.parametrize("others", [3, 50])
def test_of_many_inputs_those_of_the_signature_are_shown(others: int, tmp_path: pathlib.Path, capsys: Any) -> None:
    """A SavedModel may carry the whole graph of its training."""
    rates = "".join(f"\nrate{i} = Placeholder(dtype=float)\nn{i} = Mul(y, rate{i}, T=float)" for i in range(others))
    graph = parse(f"x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float){rates}")
    signature = Signature({"image": "x:0"}, {"scores": "y:0"})
    save(graph.replace(signatures={"serving_default": signature}), tmp_path / "served", form="saved_model")
    assert call("summarize", tmp_path / "served") == 0
    said = capsys.readouterr().out
    assert ("rate0" in said) is (others == 3)
    assert ("and 50 more that the file does not state (--json lists all)" in " ".join(said.split())) is (others == 50)
    assert call("summarize", tmp_path / "served", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["inputs"]) == 1 + others


@pytest.mark.parametrize(("table", "is_filled"), [("Hash", True), ("Hash", False), ("MutableHash", False)])
def test_nothing_that_needs_a_run_is_proposed_where_a_table_stays_empty(
    table: str, is_filled: bool, tmp_path: pathlib.Path, capsys: Any
) -> None:
    """A mutable one answers: with what its lookup says is for missing keys."""
    fill = "fill = InitializeTableV2(table, words, numbers, Tkey=string, Tval=int64)"
    graph = parse(f"""
        x = Placeholder(dtype=string, shape=[?])
        table = {table}TableV2(key_dtype=string, value_dtype=int64)
        words = Const(string ["a", "b"])
        numbers = Const(int64 [0, 1])
        none = Const(int64 -1)
        {fill if is_filled else ""}
        y = LookupTableFindV2(table, x, none{", ^fill" if is_filled else ""}, Tin=string, Tout=int64)
    """)
    save(graph, tmp_path / "words.pb")
    commands = [command[0] for command in proposed(tmp_path / "words.pb", capsys)]
    answers = is_filled or table == "MutableHash"
    assert commands == (["transform_graph", "verify", "benchmark_model"] if answers else ["view"])


@needs_shared
def test_a_meta_file_finds_its_checkpoint(tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    freeze, *others = proposed(model_dir("ckpt_v2_linreg_chain") / "linear_regression.ckpt.meta", capsys)
    assert call(*freeze) == 0
    assert (tmp_path / "frozen.pb").exists()
    for command in others:
        assert call(*command) == 0, command


def test_what_is_proposed_never_writes_over_the_model(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 2])
        w = Const(float[2, 2] [[1, 2], [3, 4]])
        l = MatMul(x, w, T=float)
        y = Softmax(l, T=float)
    """)
    save(graph, tmp_path / "small.pb")
    before = (tmp_path / "small.pb").read_bytes()
    commands = proposed("small.pb", capsys)
    assert [command[0] for command in commands] == ["transform_graph", "verify", "benchmark_model"]
    for command in commands:
        assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0
    assert (tmp_path / "small.pb").read_bytes() == before


RETRAINED = """
    image = Placeholder(dtype=float, shape=[1, 4, 4, 3])
    flat = Reshape(image, size, T=float)
    size = Const(int32[2] [1, 48])
    cached = PlaceholderWithDefault(flat, dtype=float, shape=[?,48])
    labels = Placeholder(dtype=int64, shape=[?])
    one = Const(float 1)
    keep_prob = PlaceholderWithDefault(one, dtype=float, shape=[])
    scaled = Mul(cached, keep_prob, T=float)
    w = Const(float[48, 2] 0.5)
    m = MatMul(scaled, w, T=float)
    both = Const(float [0.5, -0.5])
    l = Mul(m, both, T=float)
    final_result = Softmax(l, T=float)
"""


def test_a_retrained_model_keeps_its_network(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is proposed feeds the picture, not the layer that training cached, nor what has a constant default."""
    monkeypatch.chdir(tmp_path)
    save(parse(RETRAINED), tmp_path / "retrained.pb")
    commands = proposed("retrained.pb", capsys)
    assert "--inputs=image" in commands[0]
    for command in commands:
        assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0
    assert "image" in load(tmp_path / "small.pb")
    assert "Input layers: [image]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "decoder",
    [
        "DecodeWav(file, desired_channels=2, desired_samples=160)\n x = Relu(decoded, T=float)",
        "DecodeJpeg(file, channels=3)\n x = Cast(decoded, SrcT=uint8, DstT=float)",
    ],
)
def test_what_reads_files_is_fed_files(
    decoder: str, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = parse(f"file = Placeholder(dtype=string)\n decoded = {decoder}\n labels_softmax = Softmax(x, T=float)")
    save(graph, tmp_path / "model.pb")
    commands = proposed("model.pb", capsys)
    assert [command[0] for command in commands] == ["transform_graph", "verify", "benchmark_model"]
    for command in commands:
        assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0


@needs_shared
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("lenet_kisan", "optimized_graph.pb"),  # neither the size nor the rank of its inputs is declared
        ("espcn_x3", "ESPCN_x3.pb"),  # an iterator's element is fed
        ("har_curiousily_model", "frozen_model.pb"),  # a loop that is written out, behind a transposed input
        ("kws_basic_lstm_s", "Basic_LSTM_S.pb"),  # a recording goes in, and a loop adds errors up
        ("poets_retrained_128", "retrained_graph.pb"),  # a layer of the network is a placeholder
        ("mobilenet_v1_025_128_quant", "quantized_graph.pb"),  # in eight bits already
        ("federated_graph", "graph.pb"),  # variables whose values are elsewhere
        ("sm_counter", "saved_model_counter/00000123"),  # what counts has become a constant
        ("sm_half_plus_two_cpu", "saved_model_half_plus_two_cpu/00000123"),  # a stated input behind what parses records
    ],
)
def test_what_is_proposed_runs_as_it_is_printed(
    name: str, file: str, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in proposed(model_dir(name) / file, capsys):
        assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0, command


def test_what_is_proposed_for_an_estimator_and_for_lengths_runs(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of made-up features go in where they are parsed, a number of steps is not 0, nor what pictures are scaled
    by, and a state that is broadcast may be one number."""
    monkeypatch.chdir(tmp_path)
    estimator = parse("""
        examples = Placeholder(dtype=string, shape=[?])
        names = Const(string [])
        key = Const(string "x")
        none = Const(float [])
        parsed = ParseExample(examples, names, key, none, Nsparse=0, Ndense=1, Tdense=[float], sparse_types=[],
            dense_shapes=[[2]])
        w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        logits = MatMul(parsed, w, T=float)
        scores = Softmax(logits, T=float)
    """)
    steps = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        steps = Placeholder(dtype=int32, shape=[])
        rest = Const(int32 -1)
        four = Const(int32 4)
        shape = Pack(rest, steps, four, T=int32, N=3)
        rows = Reshape(x, shape, T=float, Tshape=int32)
        w = Const(float[4, 2] [[1, 2], [3, 4], [5, 6], [7, 8]])
        flat = Const(int32 [-1, 4])
        again = Reshape(rows, flat, T=float, Tshape=int32)
        l = MatMul(again, w, T=float)
        y = Softmax(l, T=float)
    """)
    frames = parse("""
        frame = Placeholder(dtype=float, shape=[?,?,?,3])
        ratio = Placeholder(dtype=float)
        state = Placeholder(dtype=float)
        size = Shape(frame, T=float, out_type=int32)
        one = Const(int32 [1])
        three = Const(int32 [3])
        sides = StridedSlice(size, one, three, one, T=int32, Index=int32)
        exact = Cast(sides, SrcT=int32, DstT=float)
        all = Const(float 1.0)
        is_whole = Equal(ratio, all, T=float)
        whole = Cast(is_whole, SrcT=bool, DstT=float)
        scaled = Mul(exact, ratio, T=float)
        fewer = Cast(scaled, SrcT=float, DstT=int32)
        small = ResizeBilinear(frame, fewer, T=float)
        w = Const(float [[[[0.5, -1.0], [0.25, 2.0], [1.0, 0.5]]]])
        conv = Conv2D(small, w, T=float, strides=[1,1,1,1], padding="SAME")
        sizes = Shape(conv, T=float, out_type=int32)
        before = BroadcastTo(state, sizes, T=float, Tidx=int32)
        sum = AddV2(conv, before, T=float)
        y = AddV2(sum, whole, T=float)
    """)
    for graph in (estimator, steps, frames):
        save(graph, tmp_path / "model.pb")
        commands = proposed("model.pb", capsys)
        assert [command[0] for command in commands] == ["transform_graph", "verify", "benchmark_model"]
        for command in commands:
            assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0, command


def test_no_run_is_proposed_where_no_shape_is_found(tmp_path: pathlib.Path, capsys: Any) -> None:
    """``verify`` and ``benchmark_model`` would ask for it."""
    model = tmp_path / "model.pb"
    save(parse("x = Placeholder(dtype=float)\nr = Relu(x, T=float)\ny = Softmax(r, T=float)"), model)
    assert [command[0] for command in proposed(model, capsys)] == ["transform_graph", "view"]


def test_a_share_that_is_kept_by_default_leaves_something_to_verify(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow 1.13 and later take the share from 1 twice."""
    monkeypatch.chdir(tmp_path)
    text = """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4, 4] [[1, 2, 3, 4], [3, 4, 1, 2], [5, 6, 0, 1], [7, 8, 2, 0]])
        h = MatMul(x, w, T=float)
        KEEP
        one = Const(float 1.0)
        rate = Sub(one, keep, T=float)
        size = Shape(h, T=float, out_type=int32)
        noise = RandomUniform(size, dtype=float, T=int32)
        left = Sub(one, rate, T=float)
        scale = RealDiv(one, left, T=float)
        scaled = Mul(h, scale, T=float)
        is_kept = GreaterEqual(noise, rate, T=float)
        mask = Cast(is_kept, SrcT=bool, DstT=float)
        dropped = Mul(scaled, mask, T=float)
        y = Softmax(dropped, T=float)
    """
    for keep in (
        "share = Const(float 1.0)\nkeep = PlaceholderWithDefault(share, dtype=float, shape=[])",
        "keep = Placeholder(dtype=float)",
    ):
        save(parse(text.replace("KEEP", keep)), tmp_path / "model.pb")
        commands = proposed("model.pb", capsys)
        steps = ["freeze_graph", "transform_graph", "verify", "benchmark_model"]
        assert [command[0] for command in commands] == steps
        for command in commands:
            assert call(*command, *(["--num_runs=1"] if command[0] == "benchmark_model" else [])) == 0, command


@needs_shared
def test_a_v1_checkpoint_beside_its_meta_file_is_found(capsys: Any) -> None:
    freeze, *_ = proposed(model_dir("ckpt_v1_neo") / "model.ckpt.meta", capsys)
    assert freeze[0] == "freeze_graph"


@pytest.mark.parametrize("columns", [50, 80, 100])
def test_names_keep_their_ends_in_narrow_terminals(
    columns: int, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "a_scope/" + "another_scope/" * 8 + "placeholder"
    last = "a_scope/" + "another_scope/" * 8 + "result"
    graph = parse(f"{name} = Placeholder(dtype=float, shape=[1,4])\n {last} = Softmax({name}, T=float)")
    save(graph, tmp_path / "model.pb")
    for command in ("summarize", "plan"):
        assert call(command, tmp_path / "model.pb") == 0
        table = capsys.readouterr().out.partition("\n")[2].partition("next:")[0]
        rows = [line for line in table.splitlines() if "a_" in line and "…" in line]
        assert len(rows) == (2 if command == "summarize" else 1), table
        assert all(len(line) <= columns for line in rows)
        assert "lder" in rows[0]
        assert "sult" in rows[-1]
    assert call("summarize", "--json", tmp_path / "model.pb") == 0
    assert name in capsys.readouterr().out


def test_what_an_iterator_gives_in_several_pieces_gets_a_placeholder_each(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = parse("""
        it = IteratorV2(output_types=[float, float], output_shapes=[[?,2],[?,2]])
        next = IteratorGetNext(it, output_types=[float, float], output_shapes=[[?,2],[?,2]])
        both = Add(next, next:1, T=float)
        w = Const(float[2,3] [[0.5, 1.0, -0.5], [1.0, -1.0, 2.0]])
        logits = MatMul(both, w, T=float)
        y = Softmax(logits, T=float)
    """)
    save(graph, "frozen.pb")
    commands = proposed("frozen.pb", capsys)
    assert commands[0][0] == "freeze_graph"
    assert "--inputs=next,next_1" in commands[1]
    for command in commands:
        assert call(*command) == 0, command


def test_what_an_iterator_gives_is_fed_to_what_is_proposed(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = parse("""
        it = IteratorV2(output_types=[float], output_shapes=[[?,4]])
        next = IteratorGetNext(it, output_types=[float], output_shapes=[[?,4]])
        w = Const(float[4,3] [[0.5, 1.0, -0.5], [1.0, -1.0, 2.0], [0.1, 0.3, -1.0], [0.7, -0.2, 0.4]])
        logits = MatMul(next, w, T=float)
        y = Softmax(logits, T=float)
    """)
    save(graph, "frozen.pb")
    commands = proposed("frozen.pb", capsys)
    assert {"verify", "benchmark_model"} <= {command[0] for command in commands}
    for command in commands:
        assert call(*command) == 0, command


def test_a_graph_that_says_too_little_is_shown(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("y = IteratorGetNext()\nz = Neg(y, T=float)"), tmp_path / "damaged.pb")
    assert call("summarize", tmp_path / "damaged.pb") == 0
    assert "Neg" in capsys.readouterr().out


def test_of_ops_that_nothing_here_computes_no_run_is_proposed(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = """
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float[2,3] [[0.5, 1.0, -0.5], [1.0, -1.0, 2.0]])
        own = AcmeSwish(x, T=float)
        product = MatMul(own, w, T=float)
        y = Softmax(product, T=float)
    """
    save(parse(text), "net.pb")
    assert call("summarize", "net.pb") == 0
    said = capsys.readouterr().out
    assert "it does not run here: No OpKernel was registered to support Op 'AcmeSwish' used by 'own'" in said
    assert "pocketgraph help custom-kernels" in said
    commands = proposed("net.pb", capsys)
    assert [command[0] for command in commands] == ["transform_graph", "view"]
    for command in commands:
        assert call(*command) == 0, command
    assert call("check", "net.pb") == 1
    assert "pocketgraph help custom-kernels" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["tflite", "onnx"])
def test_of_a_finished_file_a_time_and_a_picture_are_proposed(
    ending: str, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not ``identify``, which proposes ``summarize``."""
    monkeypatch.chdir(tmp_path)
    export(parse("x = Placeholder(dtype=float, shape=[2, 3])\ny = Neg(x, T=float)"), f"net.{ending}")
    commands = proposed(f"net.{ending}", capsys)
    assert [command[0] for command in commands] == ["benchmark_model", "view"]
    for command in commands:
        assert call(*command) == 0, command


def test_of_records_the_columns_are_told_and_what_takes_numbers_in_their_place(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(
        parse("""
            examples = Placeholder(dtype=string, shape=[?])
            names = Const(string[0] [])
            age = Const(string "age")
            none = Const(float[0] [])
            parsed = ParseExample(examples, names, age, none, Nsparse=0, Ndense=1, Tdense=[float], sparse_types=[],
                                  dense_shapes=[[2]])
            w = Const(float[2,3] [[1, 2, 3], [4, 5, 6]])
            scores = MatMul(parsed, w, T=float)
            shares = Softmax(scores, T=float)
        """),
        tmp_path / "net.pb",
    )
    assert call("summarize", tmp_path / "net.pb") == 0
    said = "'examples' takes records of tf.Example with age; --inputs=parsed takes numbers in their place"
    assert said in capsys.readouterr().out
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "net.tflite", "--inputs=parsed") == 0


CENTRES = """
    x = Placeholder(dtype=float, shape=[1,40])
    w = Const(float WEIGHTS)
    sums = MatMul(x, w, T=float)
    scores = Reshape(sums, flat, T=float, Tshape=int32)
    flat = Const(int32 [-1])
    k = Const(int32 3)
    best = TopKV2(scores, k, T=float, sorted=true)
    axis = Const(int32 0)
    sides = Const(float SIDES)
    found = GatherV2(sides, best:PLACES, axis, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
"""


def test_no_few_bits_are_proposed_where_answers_are_read_at_places_that_scores_choose(
    tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As detectors by centres of objects: in eight bits other places were the best, and the proposed verify failed."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    weights, sides = rng.normal(size=(40, 64)), rng.normal(size=(64, 4))
    text = CENTRES.replace("WEIGHTS", str(weights.tolist())).replace("SIDES", str(sides.tolist()))
    save(parse(text.replace("PLACES", "1")), tmp_path / "centres.pb")
    transform, verify, _ = proposed("centres.pb", capsys)
    assert "--transforms=mobile" in transform
    assert call(*transform) == call(*verify) == 0
    fixed = text.replace("best:PLACES", "first") + "first = Const(int32 [0, 2])\n"
    save(parse(fixed + "all = IdentityN(best:0, best:1, found, T=[float, int32, float])"), tmp_path / "plain.pb")
    assert "--transforms=smallest" in proposed("plain.pb", capsys)[0]
