"""Loops and branches that stay such in .tflite files and C libraries: TensorFlow's numbers, also without XNNPACK."""

from __future__ import annotations

import pathlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import pocketgraph
from c_programs import needs_cc, results
from command_line import call
from graph_files import graph_file, graph_names
from loop_text import counted_loop
from pocketgraph.errors import RunError, UsageError
from pocketgraph.exporting import opened
from pocketgraph.exporting.model import EntryPoint, ExportModel
from pocketgraph.exporting.programs import LackingError, float_program
from pocketgraph.exporting.tflite.open_size_programs import open_program
from pocketgraph.graph import Graph, Shape, const
from pocketgraph.graph.dtype import HALF, INT8
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.float_program import simplified
from pocketgraph.quantization.serialization.tflite_bytes import as_written
from pocketgraph.quantization.weight_only import quantize_weights
from support import ROOT, lines_taken, with_weights

FOLDER = ROOT / "tests" / "fixtures" / "loops"
GOLDEN = dict(np.load(FOLDER.with_suffix(".npz")))
NAMES = graph_names(FOLDER)
RECURRENT = ["dynamic_rnn", "lstm"]
BRANCHES = ["branch_in_loop", "branches", "branches_1", "cases", "loop_in_branch"]
Arrays = dict[str, np.ndarray[Any, Any]]


def feeds_of(name: str) -> Arrays:
    return {key.split("/")[2]: value for key, value in GOLDEN.items() if key.startswith(f"{name}/in/")}


def wanted_of(name: str) -> list[np.ndarray[Any, Any]]:
    return [GOLDEN[f"{name}/out/{number}"] for number in range(len(GOLDEN[f"{name}/outputs"]))]


def outputs_of(name: str) -> list[str]:
    return [str(each) for each in GOLDEN[f"{name}/outputs"]]


def exported(name: str, place: pathlib.Path, **options: Any) -> Any:
    if name == "until_it_is_near":  # made-up numbers have no roots
        options["samples"] = {"x": feeds_of(name)["x"][None]}
    return pocketgraph.export(graph_file(FOLDER, name), place, outputs=outputs_of(name), force=True, **options)


def interpreted(path: pathlib.Path, name: str, *, threads: int = 1, plain: bool = False) -> list[np.ndarray[Any, Any]]:
    """What LiteRT gives in the second run, whose variables begin anew."""
    by = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else OpResolverType.AUTO
    runner = Interpreter(str(path), num_threads=threads, experimental_op_resolver_type=by).get_signature_runner()
    given = {key: np.asarray(value) for key, value in feeds_of(name).items()}
    runner(**given)
    found = runner(**given)
    return [found[output.removesuffix(":0")] for output in outputs_of(name)]


def assert_near(found: list[np.ndarray[Any, Any]], name: str, apart: float) -> None:
    for got, want in zip(found, wanted_of(name), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=apart * max(1, np.abs(want).max()))


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_tensorflows_in_litert_and_in_a_session(name: str, tmp_path: pathlib.Path) -> None:
    made = exported(name, tmp_path / "net.tflite")
    assert all(check.passed for check in made.checks)
    ops = {node.op for node in pocketgraph.load(tmp_path / "net.tflite")}
    assert ("tfl.if" in ops) == (name in BRANCHES)
    assert ("tfl.while" in ops) == (name not in ("branches", "branches_1", "cases"))
    for threads in (1, 2):
        for plain in (False, True):
            assert_near(interpreted(tmp_path / "net.tflite", name, threads=threads, plain=plain), name, 1e-6)
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        found = session.run_signature(feeds_of(name))
    assert_near([found[output.removesuffix(":0")] for output in outputs_of(name)], name, 1e-6)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.tflite")))
def test_files_of_the_converter_are_read_and_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    graph = pocketgraph.load(FOLDER / f"{name}.tflite")
    assert any(node.op in ("tfl.while", "tfl.if", "tfl.unidirectional_sequence_lstm") for node in graph)
    with pocketgraph.Session(graph) as session:
        found = session.run(list(session.outputs), dict(zip(session.inputs, feeds_of(name).values(), strict=True)))
    assert_near(found, name, 1e-5)
    call("summarize", FOLDER / f"{name}.tflite")
    assert "ops: " in capsys.readouterr().out


def program_of(graph: Graph, outputs: list[str], feeds: Arrays) -> Any:
    return simplified(graph, outputs, {key: value.shape for key, value in feeds.items()}).lowered()


def test_a_round_reads_and_writes_its_own_element_and_weights_are_in_the_file_once(tmp_path: pathlib.Path) -> None:
    program = program_of(graph_file(FOLDER, "dynamic_rnn"), outputs_of("dynamic_rnn"), feeds_of("dynamic_rnn"))
    assert [len(operation.bodies) for operation in program.operations if operation.bodies] == [2]
    _, test, turn = program.programs()
    assert {operation.code for operation in test.operations} == {"LESS"}
    codes = Counter(operation.code for operation in turn.operations)
    assert codes["GATHER"] == codes["DYNAMIC_UPDATE_SLICE"] == codes["FULLY_CONNECTED"] == 1
    assert len(turn.inputs) == len(turn.outputs) == len(test.inputs)
    exported("dynamic_rnn", tmp_path / "net.tflite")
    assert (tmp_path / "net.tflite").stat().st_size < 12_000  # of 9 x 24 weights; 300 rounds would be a megabyte


@pytest.mark.parametrize("name", ["branches", "cases", "changing_places", "loop_in_branch", "nested"])
def test_an_open_batch_stays_open(name: str, tmp_path: pathlib.Path) -> None:
    """The file is made for one row, and LiteRT gives TensorFlow's numbers for two; but where bodies hand on what they
    take as something else, which LiteRT 2.3 does not resize: the check of the export finds that."""
    graph = graph_file(FOLDER, name).map_nodes(
        lambda node: node.with_attrs(shape=Shape([None, 8])) if node.name == "x" else node
    )
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=outputs_of(name))
    is_open = name not in ("branches", "changing_places")
    assert ("open sizes are fixed: LiteRT did not give the same with others" in made.notes) == (not is_open)
    details = Interpreter(str(tmp_path / "net.tflite")).get_input_details()
    assert [[*each["shape_signature"]] for each in details if len(each["shape"])] == [[-1 if is_open else 1, 8]]
    if not is_open:
        return
    for plain in (False, True):
        assert_near(interpreted(tmp_path / "net.tflite", name, plain=plain), name, 1e-6)


@pytest.mark.parametrize("places", ["first, first", "second, second", "first, second"])
def test_a_batch_stays_fixed_where_other_ones_join_other_branches(places: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(operands: str) -> ExportModel:
        return opened(parse(f"""
            x = Placeholder(dtype=float, shape=[?,4])
            p = Placeholder(dtype=bool, shape=[])
            ways = Switch(x, p, T=float)
            sin = Sin(ways:1, T=float)
            cos = Cos(ways, T=float)
            first = Merge(cos, sin, T=float, N=2)
            second = Merge(ways, sin, T=float, N=2)
            y = Add({operands}, T=float)
        """), outputs=["y"])  # fmt: skip

    def program(entry: EntryPoint, *, model: ExportModel, without: tuple[str, ...]) -> Program:
        like = both if entry.inputs[0].sizes == (2, 4) else other
        return float_program(entry, like, without=without)

    both, other = model("first, second"), model(places)
    monkeypatch.setattr("pocketgraph.exporting.tflite.open_size_programs.float_program", program)
    found, why = open_program(both.main, both)
    assert (found is not None) == (places == "first, second")
    assert ("other sizes need other operators" in why) == (found is None)


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_give_no_constants_in_a_file(name: str) -> None:
    """LiteRT 2.3 frees these when an interpreter ends, and the process with them."""
    program = program_of(graph_file(FOLDER, name), outputs_of(name), feeds_of(name))
    bodies = [body for each in (program, as_written(program)) for body in each.programs()[1:]]
    given = [value.constant is not None for body in bodies for value in body.outputs]
    assert any(given) == (name not in ("cases", "loop_in_branch"))
    assert not any(given[len(given) // 2 :])


@pytest.mark.parametrize("mode", ["float16", "dynamic"])
@pytest.mark.parametrize("name", RECURRENT)
def test_weights_in_rounds_are_made_smaller(name: str, mode: str, tmp_path: pathlib.Path) -> None:
    made = exported(name, tmp_path / "net.tflite", mode=mode)
    assert made.checks[0].passed
    assert_near(interpreted(tmp_path / "net.tflite", name), name, 0.002 if mode == "float16" else 0.03)
    halves = [node for node in pocketgraph.load(tmp_path / "net.tflite") if node.attr("dtype", None) is HALF]
    assert bool(halves) == (mode == "float16")


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_layers_in_rounds_have_codes_and_it_is_said(mode: str, tmp_path: pathlib.Path) -> None:
    """Where a matrix is large enough to be worth it; NumPy has the same numbers."""
    random = np.random.default_rng(3)
    weights = random.normal(size=(40, 40)).astype(np.float32) / 8
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,40])\nn = Placeholder(dtype=int32, shape=[1])\nw = Const(float 0)\n"
        "first = Const(int32 0)\nmost = Max(n, first, T=int32, Tidx=int32)\nother = MatMul(x, w, T=float)\n"
        + counted_loop("most", "step = MatMul(v, w_in, T=float)\nnext = Tanh(step, T=float)", start="other",
                       given={"w": "float"})
    )  # fmt: skip
    graph = graph.map_nodes(lambda node: const("w", weights) if node.name == "w" else node)
    samples = {"x": random.normal(size=(8, 40)).astype(np.float32), "n": np.full((8, 1), 5, np.int32)}
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], mode=mode, samples=samples)
    in_rounds = [node for node in pocketgraph.load(tmp_path / "net.tflite") if node.name.startswith("body_")]
    assert sum(node.op == "Const" and node.attrs["dtype"] is INT8 for node in in_rounds) == 1
    said = "1 layer in the rounds of a loop: weights in eight bits"
    assert any(note.startswith(said) for note in made.notes) == (mode == "static")
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        found = session.run_signature({"x": samples["x"][:1], "n": samples["n"][0]})["y"]
    state = samples["x"][:1] @ weights
    for _ in range(5):
        state = np.tanh(state @ weights)
    np.testing.assert_allclose(found, state, atol=0.05)


@pytest.mark.parametrize(
    "turn", ["next = Tanh(v, T=float)", "step = MatMul(v, w_in, T=float)\nnext = Tanh(step, T=float)"]
)
def test_layers_are_told_by_where_they_are(turn: str, tmp_path: pathlib.Path) -> None:
    """A loop beside a branch with a layer: that is in no round, unless the round has one too."""
    random = np.random.default_rng(3)
    graph = with_weights(
        "x = Placeholder(dtype=float, shape=[1,40])\nn = Placeholder(dtype=int32, shape=[1])\nw = Const(float 0)\n"
        "p = Placeholder(dtype=bool, shape=[1])\nfirst = Const(int32 0)\nflag = Any(p, first, Tidx=int32)\n"
        "most = Max(n, first, T=int32, Tidx=int32)\nways = Switch(x, flag, T=float)\n"
        "above = MatMul(ways:1, w, T=float)\nbelow = Sin(ways, T=float)\nbegin = Merge(below, above, T=float, N=2)\n"
        + counted_loop("most", turn, start="begin", given={"w": "float"}),
        w=random.normal(size=(40, 40)).astype(np.float32) / 8,
    )
    samples = {"x": random.normal(size=(8, 40)).astype(np.float32), "n": np.full((8, 1), 5, np.int32),
               "p": np.arange(8)[:, None] % 2 == 0}  # fmt: skip
    places = ["1 layer in branches", "1 layer in the rounds of a loop"][: 2 if "MatMul" in turn else 1]
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], mode="static", samples=samples)
    said = [note for note in made.notes if " layer in " in note]
    assert [note.partition(":")[0] for note in said] == places
    assert ["a round's rounding" in note for note in said] == [False, True][: len(places)]
    program = program_of(graph, ["y"], {key: value[:1] if key == "x" else value[0] for key, value in samples.items()})
    notes = quantize_weights(program, list, 0, dynamic=True).notes
    assert notes == [f"{place} likewise, each weight as its nearest code" for place in places]


def test_small_layers_in_rounds_stay_in_float_and_it_is_said(tmp_path: pathlib.Path) -> None:
    """Also where there are no other layers: what is calibrated is not refused for it."""
    weights = np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32) / 2
    graph = with_weights(
        "x = Placeholder(dtype=float, shape=[1,4])\nn = Placeholder(dtype=int32, shape=[])\nw = Const(float 0)\n"
        + counted_loop("n", "step = MatMul(v, w_in, T=float)\nnext = Tanh(step, T=float)", start="x",
                       given={"w": "float"}),
        w=weights,
    )  # fmt: skip
    samples = {"x": np.eye(4, dtype=np.float32)[:, None], "n": np.full(4, 3, np.int32)}
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], mode="static", samples=samples)
    assert "1 layer in the rounds of a loop in float, of fewer than 1024 weights each" in made.notes
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        found = session.run_signature({"x": samples["x"][0], "n": np.int32(2)})["y"]
    np.testing.assert_allclose(found, np.tanh(np.tanh(samples["x"][0] @ weights) @ weights), rtol=1e-5)
    with pytest.raises(UsageError, match=r"\.tflite files hold codes of more of them than graphs do"):
        pocketgraph.quantize(graph, outputs=["y"], samples=samples, form="pb")


def test_what_a_scan_reads_before_its_loop_is_known(tmp_path: pathlib.Path) -> None:
    """``tf.scan`` begins with the first row, which it reads outside of the loop that is unrolled."""
    graph = parse(
        "x = Placeholder(dtype=float, shape=[4,3])\nrounds = Const(int32 3)\nsize = Const(int32 4)\n"
        "nought = Const(int32 0)\nplaces = Const(int32 [0, 1, 2, 3])\n"
        "array = TensorArrayV3(size, dtype=float, element_shape=[3], dynamic_size=false, clear_after_read=false, "
        'identical_element_shapes=true, tensor_array_name="")\n'
        "filled = TensorArrayScatterV3(array, places, x, array:1, T=float)\n"
        "first = TensorArrayReadV3(array, nought, filled, dtype=float)\n"
        + counted_loop("rounds", """
            row = TensorArrayReadV3(array_in, loop/more, filled_in, dtype=float)
            half = Const(float 0.5, ^i)
            less = Mul(v, half, T=float)
            next = AddV2(less, row, T=float)
        """, start="first", given={"array": "resource", "filled": "float"})
    )  # fmt: skip
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert {node.op for node in pocketgraph.load(tmp_path / "net.tflite")}.isdisjoint({"tfl.while"})
    x = np.arange(12, dtype=np.float32).reshape(4, 3) ** 2
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        found = session.run_signature({"x": x})["y"]
    np.testing.assert_array_equal(found, x[0] / 8 + x[1] / 4 + x[2] / 2 + x[3])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_round_takes_a_row_by_its_number(axis: int, tmp_path: pathlib.Path) -> None:
    """As ``x[i]`` and ``x[:, i]`` are spelled; NumPy has the same numbers."""
    place, others = ("i", 0) if axis == 0 else ("nought, i", 1)
    after = "i_in_1" if axis == 0 else "nought, i_in_1"
    sums = "row" if axis == 0 else "wide"
    graph = parse(
        "x = Placeholder(dtype=float, shape=[4,4])\nn = Placeholder(dtype=int32, shape=[])\n"
        "zeros = Const(float [0, 0, 0, 0])\n"
        + counted_loop("n", f"""
            one = Const(int32 1, ^i)
            nought = Const(int32 0, ^i)
            i_in_1 = AddV2(i, one, T=int32)
            begin = Pack({place}, T=int32, N={axis + 1}, axis=0)
            end = Pack({after}, T=int32, N={axis + 1}, axis=0)
            steps = Const(int32 {[1] * (axis + 1)}, ^i)
            row = StridedSlice(x_in, begin, end, steps, T=float, Index=int32, begin_mask={others}, end_mask={others},
                               ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask={1 << axis})
            wide = Identity(row, T=float)
            next = Sub({sums}, v, T=float)
        """.replace(",\n                               ", ", "), start="zeros", given={"x": "float"})
    )  # fmt: skip
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    x = np.arange(16, dtype=np.float32).reshape(4, 4) ** 2
    wanted = np.zeros(4, np.float32)
    for row in x[:3] if axis == 0 else x[:, :3].T:
        wanted = row - wanted
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        np.testing.assert_array_equal(session.run_signature({"x": x, "n": np.int32(3)})["y"], wanted)


@needs_cc
@pytest.mark.parametrize("name", [name for name in NAMES if name != "lstm"])  # which takes minutes under the sanitizers
def test_a_c_library_has_them_in_line(name: str, tmp_path: pathlib.Path) -> None:
    program = program_of(graph_file(FOLDER, name), outputs_of(name), feeds_of(name))
    assert_near(results(program, list(feeds_of(name).values()), tmp_path), name, 2e-6)
    text = (tmp_path / "net.c").read_text()
    assert ("    for (;;) { /*" in text) == (name not in ("branches", "branches_1", "cases"))
    assert ("} else { /*" in text) == (name in BRANCHES)
    if name == "dynamic_rnn":  # the array is changed in its place, and copied by no round
        assert "        pg_update_rows(" in text
        assert ", 14400)" not in text.partition("for (;;)")[2]


def test_what_a_loop_cannot_be_is_said(tmp_path: pathlib.Path) -> None:
    growing = parse(
        "x = Placeholder(dtype=float, shape=[1,4])\nn = Placeholder(dtype=int32, shape=[])\n"
        + counted_loop("n", "axis = Const(int32 0, ^i)\nnext = ConcatV2(v, v, axis, T=float, N=2, Tidx=int32)")
    )
    with pytest.raises(LackingError, match=r"a loop's variable is v|is only known when running"):
        pocketgraph.export(growing, tmp_path / "net.tflite", outputs=["y"])
    assert not (tmp_path / "net.tflite").exists()


def test_a_loop_that_made_up_inputs_do_not_end_is_told_soon(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketgraph.exporting.samples.MOST_STEPS", 1000)
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,4])\nn = Placeholder(dtype=int32, shape=[])\n"
        "least = Const(int32 900)\nmost = Maximum(n, least, T=int32)\n" + counted_loop("most", "next = Sin(v, T=float)")
    )
    with pytest.raises(
        RunError, match="the loop 'loop' takes more than 1,000 steps, the run's step limit, or does not end"
    ) as error:
        pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert error.value.hint == "the inputs were made up; give some that fit with samples"
    assert not (tmp_path / "net.tflite").exists()
    samples = {"x": np.ones((1, 1, 4), np.float32), "n": np.zeros(1, np.int32)}
    assert pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], samples=samples).checks[0].passed


def test_a_loop_of_known_length_may_take_as_many_steps_as_any_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketgraph.exporting.samples.MOST_STEPS", 1000)
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,4])\nmost = Const(int32 900)\n"
        + counted_loop("most", "next = Sin(v, T=float)")
    )
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert [check.passed for check in made.checks] == [True]


def test_work_does_not_grow_with_the_cube_of_the_branches() -> None:
    """Branches of one predicate, one behind the other, as in a graph of TensorFlow 1 that is fed whether it trains."""

    def work(count: int) -> int:
        lines = ["x = Placeholder(dtype=float, shape=[1,4])", "p = Placeholder(dtype=bool, shape=[])"]
        last = "x"
        for k in range(count):
            lines += [f"s{k} = Switch({last}, p, T=float)", f"a{k} = Sin(s{k}:1, T=float)"]
            lines += [f"b{k} = Cos(s{k}, T=float)", f"m{k} = Merge(b{k}, a{k}, T=float, N=2)"]
            lines += [f"t{k} = Tanh(m{k}, T=float)"]
            last = f"t{k}"
        simple = simplified(parse("\n".join(lines)), [f"{last}:0"], {"x": (1, 4), "p": ()})
        codes = [operation.code for operation in simple.lowered().operations]
        assert codes == ["IF", "TANH"] * count
        return lines_taken(simple.lowered)

    assert work(48) < 5 * work(24)  # it was 7 times as much
