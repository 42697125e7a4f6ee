"""Freezing whole models: against what TensorFlow 1.15 made of the same checkpoints, and every way to ask for it."""

import inspect
import json
import pathlib
import shutil
from typing import Any, get_type_hints

import numpy as np
import pytest

import pocketgraph
from graph_files import graph_file
from pocketgraph import formats
from pocketgraph.errors import FormatError, FreezeError, UsageError
from pocketgraph.formats import function_def
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.initializers import initial_values
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.attr import same_attrs
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import lines_taken, model_dir, needs_shared

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "freeze"
CASES: dict[str, dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())
TRAINING = """
    x = Placeholder(dtype=float, shape=[?,2])
    w = VariableV2(dtype=float, shape=[2,2]) @"/gpu:0"
    v = VarHandleOp(dtype=float, shape=[2], shared_name="v") @"/gpu:0"
    read = ReadVariableOp(v, dtype=float) @"/gpu:0"
    product = MatMul(x, w, T=float) @"/gpu:0"
    y = Add(product, read, T=float)
"""
VALUES = {
    "w": Tensor.from_numpy(np.eye(2, dtype=np.float32)),
    "v": Tensor.from_numpy(np.array([3, 4], np.float32)),
    "global_step": Tensor.from_numpy(np.int64(7)),
}


def assert_same_nodes(actual: Graph, expected: Graph) -> None:
    assert list(actual.nodes) == list(expected.nodes)
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.op, ours.inputs, ours.device) == (theirs.op, theirs.inputs, theirs.device), ours
        assert same_attrs(ours.attrs, theirs.attrs), f"{ours} instead of {theirs}"


@pytest.mark.parametrize("case", [name for name in CASES if (FIXTURES / name / "frozen.graph").exists()])
def test_equal_to_tensorflow_node_for_node(case: str) -> None:
    folder = FIXTURES / case
    frozen = freeze(folder / "model.ckpt.meta", CASES[case]["outputs"])
    assert_same_nodes(frozen, graph_file(folder, "frozen"))
    assert frozen.outputs == tuple(CASES[case]["outputs"])


@pytest.mark.parametrize("case", ["references", "partitions", "averages"])
def test_frozen_models_compute_what_the_training_session_computed(case: str) -> None:
    session = Session(freeze(FIXTURES / case / "model.ckpt.meta", "y"))
    feeds = {name: np.array(value, np.float32) for name, value in CASES[case]["feeds"].items()}
    (result,) = session.run(["y:0"], feeds)
    np.testing.assert_allclose(result, CASES[case]["values"][0], rtol=1e-5)


def test_functions_take_values_instead_of_handles() -> None:
    graph = formats.load(FIXTURES / "functions" / "model.ckpt.meta")
    frozen = freeze(FIXTURES / "functions" / "model.ckpt.meta", "y")
    again = formats.from_bytes(formats.to_bytes(frozen))
    assert len(again.functions) == len(graph.functions)
    assert all("_frozen_" in name for name in again.functions)
    (loop,) = (node for node in again if node.op == "While")
    assert "resource" not in [dtype.name for dtype in loop.attr("T")]
    (choice,) = (node for node in again if node.op == "If")
    assert [dtype.name for dtype in choice.attr("Tin")] == ["float"]
    ops = {node.op for function in again.functions.values() for node in function.nodes}
    assert "GatherV2" in ops
    assert not ops & {"ReadVariableOp", "ResourceGather"}


@pytest.mark.parametrize("control_flow", ["lower", "keep"])
def test_functions_of_tensorflow_1_inlined(control_flow: Any) -> None:
    frozen = freeze(FIXTURES / "functions" / "model.ckpt.meta", "y", control_flow=control_flow)
    assert bool(frozen.functions) is (control_flow == "keep")
    session = Session(frozen)
    feeds = {name: np.array(value, np.float32) for name, value in CASES["functions"]["feeds"].items()}
    (result,) = session.run(["y:0"], feeds)
    np.testing.assert_allclose(result, CASES["functions"]["values"][0], rtol=1e-5)


def test_a_training_directory(tmp_path: pathlib.Path) -> None:
    formats.save(parse(TRAINING), tmp_path / "graph.pbtxt", text=True)
    write_checkpoint(tmp_path / "model.ckpt-5", VALUES, shards=2)
    told = freeze_with_report(tmp_path)
    assert told.source == str(tmp_path / "graph.pbtxt")
    assert told.checkpoint == str(tmp_path / "model.ckpt-5")
    assert told.variables == ("w", "v")
    assert told.warnings == ()
    assert told.graph.outputs == ("y",)
    assert_same_nodes(
        told.graph,
        parse("""
            x = Placeholder(dtype=float, shape=[?,2])
            w = Const(float [[1.0, 0.0], [0.0, 1.0]])
            v = Const(float [3.0, 4.0])
            read = Identity(v, T=float)
            product = MatMul(x, w, T=float)
            y = Add(product, read, T=float)
        """),
    )


@pytest.mark.parametrize(
    "name", ["model.ckpt-5", "model.ckpt-5.index", "", "checkpoint", "model.ckpt-5.data-00000-of-00001"]
)
def test_every_name_of_a_checkpoint(tmp_path: pathlib.Path, name: str) -> None:
    write_checkpoint(tmp_path / "model.ckpt-5", VALUES)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-5"')
    frozen = freeze(parse(TRAINING), ["y:0"], tmp_path / name)
    assert frozen["w"].tensor.same_values(VALUES["w"])


def test_a_graph_file_takes_the_checkpoint_beside_it(tmp_path: pathlib.Path) -> None:
    formats.save(parse(TRAINING), tmp_path / "train.pb")
    write_checkpoint(tmp_path / "m", VALUES)
    assert freeze(tmp_path / "train.pb", "y")["w"].op == "Const"
    (tmp_path / "m.index").unlink()
    with pytest.raises(FreezeError, match="2 variables and no checkpoint was given; name the checkpoint's prefix"):
        freeze(tmp_path / "train.pb", "y")


def test_the_package_is_the_function() -> None:
    assert pocketgraph.freeze(parse(TRAINING), "y", VALUES)["v"].op == "Const"
    from pocketgraph.freezing import tool

    assert tool.freeze is freeze


def test_some_variables_only() -> None:
    only = freeze(parse(TRAINING), "y", VALUES, variable_names_whitelist=["w"])
    assert (only["w"].op, only["v"].op, only["read"].op) == ("Const", "VarHandleOp", "ReadVariableOp")
    for names, op in ((" w,", "Const"), ("ww", "VariableV2")):  # no part of another name
        assert freeze(parse(TRAINING), "y", VALUES, variable_names_whitelist=names)["w"].op == op
    without = freeze(parse(TRAINING), "y", VALUES, variable_names_blacklist=["w"])
    assert (without["w"].op, without["v"].op, without["read"].op) == ("VariableV2", "Const", "Identity")


def test_devices_may_stay() -> None:
    assert freeze(parse(TRAINING), "y", VALUES, clear_devices=False)["product"].device == "/gpu:0"
    assert freeze(parse(TRAINING), "y", VALUES)["product"].device == ""


def test_a_graph_without_variables() -> None:
    with pytest.raises(FreezeError, match=r"No variables were found in this model\. It is likely the model was frozen"):
        freeze(parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)"), "y", VALUES)


def test_missing_variables_are_all_named() -> None:
    with pytest.raises(FreezeError, match=r"2 variables are not in the checkpoint: 'w' \(near: 'ww'\), 'v'.*holds ww"):
        freeze(parse(TRAINING), "y", {"ww": VALUES["w"]})
    with pytest.raises(FreezeError, match=r"1 variable is not in the checkpoint: 'w'"):
        freeze(parse(TRAINING), "y", {"v": VALUES["v"]})


def test_a_checkpoint_of_another_model() -> None:
    wrong = {"w": Tensor.from_numpy(np.zeros((3, 2), np.float32)), "v": Tensor.from_numpy(np.zeros(2))}
    with pytest.raises(
        FreezeError, match=r"'w' is float\[2,2\] in the graph and float\[3, 2\] in the checkpoint; 'v' is"
    ):
        freeze(parse(TRAINING), "y", wrong)


def test_an_unknown_shape_fits() -> None:
    text = "v = Variable(dtype=float, shape=[])\nu = VariableV2(dtype=float, shape=<unknown>)\ny = Add(v, u, T=float)"
    assert freeze(parse(text), "y", {"v": VALUES["v"], "u": VALUES["w"]})["v"].tensor.shape == (2,)
    with pytest.raises(FreezeError, match="'s' is float"):
        freeze(parse("s = VariableV2(dtype=float, shape=[])\ny = Relu(s, T=float)"), "y", {"s": VALUES["v"]})


def test_a_resource_is_known_by_its_shared_name() -> None:
    text = 'a/v = VarHandleOp(dtype=float, shape=[2], shared_name="v")\ny = ReadVariableOp(a/v, dtype=float)'
    assert freeze(parse(text), "y", VALUES)["a/v"].tensor.same_values(VALUES["v"])


SAVER = """
    w = VariableV2(dtype=float, shape=[2,2])
    y = Identity(w, T=float)
    save/Const = Const(string "model")
    save/names = Const(string ["w/Average"])
    save/slices = Const(string [""])
    save/RestoreV2 = RestoreV2(save/Const, save/names, save/slices, dtypes=[float])
    save/Assign = Assign(w, save/RestoreV2, T=float)
    save_1/names = Const(string ["{}"])
    save_1/RestoreV2 = RestoreV2(save/Const, save_1/names, save/slices, dtypes=[float])
    save_1/Assign = Assign(w, save_1/RestoreV2, T=float)
"""


def test_savers_and_plain_names() -> None:
    average = Tensor.from_numpy(np.full((2, 2), 9, np.float32))
    both = {"w": VALUES["w"], "w/Average": average}
    graph = parse(SAVER.format("w"))
    assert freeze(graph, "y", both)["w"].tensor is VALUES["w"]
    assert freeze(graph, "y", both, saver="save")["w"].tensor is average
    assert freeze(graph, "y", both, saver="save_1")["w"].tensor is VALUES["w"]
    assert freeze(graph, "y", {"w/Average": average})["w"].tensor is average
    assert freeze(parse(SAVER.format("w/Other")), "y", {"w/Other": average})["w"].tensor is average
    with pytest.raises(UsageError, match="the graph has no saver 'sav'; it has save, save_1"):
        freeze(graph, "y", both, saver="sav")


def test_variables_that_no_saver_saves_are_told_as_what_a_program_fills() -> None:
    """An agent's training keeps what its environment shows in variables, which are no part of its checkpoint."""
    text = SAVER.format("w").replace("y = Identity(w, T=float)", """
    seen = VariableV2(dtype=float, shape=[2,2])
    seen/read = Identity(seen, T=float)
    y = MatMul(seen/read, w, T=float)
    """)  # fmt: skip
    said = r"1 variable is not in the checkpoint: 'seen'.*saver does not save.*variable_names_blacklist=seen "
    with pytest.raises(FreezeError, match=said):
        freeze(parse(text), "y", VALUES)
    kept = freeze(parse(text), "y", VALUES, variable_names_blacklist="seen")
    cut = pocketgraph.transform(kept, "remove_control_dependencies strip_unused_nodes", "seen/read", "y")
    (result,) = Session(cut).run(["y:0"], {"seen/read:0": np.full((1, 2), 5, np.float32)})
    np.testing.assert_array_equal(result, [[5, 5]])


COPIED = """
    layer/w = VarHandleOp(dtype=float, shape=[2,2], shared_name="layer/w")
    layer/w_1 = VarHandleOp(dtype=float, shape=[2,2], shared_name="layer/w_1")
    first = ReadVariableOp(layer/w, dtype=float)
    second = ReadVariableOp(layer/w_1, dtype=float)
    y = Sub(first, second, T=float)
    Variable = VarHandleOp(dtype=float, shape=[2,2], shared_name="Variable")
    Variable/Initializer/ReadVariableOp = ReadVariableOp(layer/w, dtype=float)
    Variable/Assign = AssignVariableOp(Variable, Variable/Initializer/ReadVariableOp, dtype=float)
    Variable_1 = VarHandleOp(dtype=float, shape=[2,2], shared_name="Variable_1")
    Variable_1/Initializer/ReadVariableOp = ReadVariableOp(layer/w_1, dtype=float)
    Variable_1/Assign = AssignVariableOp(Variable_1, Variable_1/Initializer/ReadVariableOp, dtype=float)
    file = Placeholder(dtype=string)
    names = Const(string ["a/_kernel", "b/_kernel"])
    slices = Const(string ["", ""])
    restored = RestoreV2(file, names, slices, dtypes=[float, float])
    restore_1 = AssignVariableOp(Variable_1, restored, dtype=float)
    restore = AssignVariableOp(Variable, restored:1, dtype=float)
"""


def test_moving_averages_are_what_an_evaluation_in_tensorflow_restores() -> None:
    graph = formats.load(FIXTURES / "averages" / "model.ckpt.meta")
    stored = formats.open_checkpoint(FIXTURES / "averages" / "model.ckpt")
    average = "w/ExponentialMovingAverage"
    both = {"w": VALUES["w"], average: stored[average], "v": stored["other/v"]}
    frozen = freeze_with_report(graph, "y", both, moving_averages=True)
    feeds = {name: np.array(value, np.float32) for name, value in CASES["averages"]["feeds"].items()}
    (result,) = Session(frozen.graph).run(["y:0"], feeds)
    np.testing.assert_allclose(result, CASES["averages"]["values"][0], rtol=1e-5)
    assert frozen.warnings == ()
    last = freeze_with_report(graph, "y", both)
    assert last.graph["w"].tensor is VALUES["w"]
    assert "training kept moving averages of 1 variable" in last.warnings[0]
    assert freeze_with_report(graph, "y", both, saver="save").warnings == ()  # which restores the averages


def test_moving_averages_that_nobody_kept() -> None:
    with pytest.raises(FreezeError, match="no moving averages"):
        freeze(parse(TRAINING), "y", VALUES, moving_averages=True)


def test_variables_whose_copies_are_restored() -> None:
    """Keras 3 lets its saver restore a copy of each variable; names of two layers in one may be the same."""
    stored = {"a/_kernel": VALUES["w"], "b/_kernel": Tensor.from_numpy(np.full((2, 2), 9, np.float32))}
    frozen = freeze(parse(COPIED), "y", stored)
    assert frozen["layer/w_1"].tensor is stored["a/_kernel"]
    assert frozen["layer/w"].tensor is stored["b/_kernel"]
    with_value = COPIED + "given = AssignVariableOp(layer/w, second, dtype=float)"
    with pytest.raises(FreezeError, match=r"1 variable is not in the checkpoint: 'layer/w'"):
        freeze(parse(with_value), "y", stored)


def test_partitions_without_their_saver() -> None:
    folder = FIXTURES / "partitions"
    bare = [n for n in formats.load(folder / "model.ckpt.meta") if not n.name.startswith("save")]
    assert_same_nodes(freeze(Graph(bare), "y", folder / "model.ckpt"), graph_file(folder, "frozen"))
    whole = {"cut/w": Tensor.from_numpy(np.zeros((7, 2), np.float32)), "cut/r": VALUES["w"]}
    with pytest.raises(FreezeError, match="models containing partition variables need their saver"):
        freeze(Graph(bare), "y", whole)


INITIALIZED = """
    w = VariableV2(dtype=float, shape=[2,2])
    zero = Const(float [[0.0, 0.0], [0.0, 0.0]])
    random = RandomUniform(shape, T=int32, dtype=float)
    shape = Const(int32 [2, 2])
    set = Assign(w, zero, T=float)
    shuffle = Assign(w, random, T=float)
    init = NoOp(^set)
    y = Identity(w, T=float)
"""


def test_initializer_nodes_assign_constants_after_restoring() -> None:
    frozen = freeze(parse(INITIALIZED), "y", VALUES, initializer_nodes=["init"])
    assert frozen["w"].tensor.numpy().tolist() == [[0, 0], [0, 0]]
    assert freeze(parse(INITIALIZED), "y", initializer_nodes=["init"])["w"].op == "Const"
    with pytest.raises(FreezeError, match="compute the value of 'w', in place of what was trained"):
        freeze(parse(INITIALIZED), "y", VALUES, initializer_nodes=["shuffle"])
    with pytest.raises(FreezeError, match="ini is not in graph; did you mean 'init'"):
        freeze(parse(INITIALIZED), "y", VALUES, initializer_nodes=["ini"])


def test_what_a_loader_runs_after_restoring_wins_over_the_checkpoint() -> None:
    """As in TensorFlow, whose loader of SavedModels restores first: exports so fill variables that no saver saves. What
    it would compute anew, as by an initializer of all variables, is taken from the checkpoint, and told."""
    graph = parse(INITIALIZED + "    more = AssignAdd(w, zero, ^set, T=float)")
    values, told = initial_values(graph, [], "init", {"w"}, has_checkpoint=True)
    assert (values["w"].numpy().tolist(), told) == ([[0, 0], [0, 0]], [])
    for computes in ("shuffle", "more"):
        values, (told_of,) = initial_values(graph, [], computes, {"w"}, has_checkpoint=True)
        assert values == {}
        assert f"runs '{computes}', which computes other values of 'w'" in told_of
        assert initial_values(graph, [], computes, set(), has_checkpoint=True) == ({}, [])
    with pytest.raises(FreezeError, match="compute the value of 'w'"):
        initial_values(graph, [], "shuffle", {"w"}, has_checkpoint=False)


def test_what_training_left_behind_is_told() -> None:
    told = freeze_with_report(
        parse("""
            w = VariableV2(dtype=float, shape=[2,2])
            one = Const(float [[1.0, 1.0], [1.0, 1.0]])
            update = AssignAdd(w, one, T=float)
            switch = RefSwitch(w, flag, T=float)
            flag = Const(bool true)
            table = HashTableV2(key_dtype=string, value_dtype=int64)
            keys = Const(string ["a"])
            file = Const(string "words.txt")
            fill = InitializeTableFromTextFileV2(table, file, key_index=-2, value_index=-1)
            found = LookupTableFindV2(table, keys, keys)
            queue = FIFOQueueV2(component_types=[float])
            batch = QueueDequeueV2(queue, component_types=[float])
            y = Add(update, switch, ^found, ^batch, T=float)
        """),
        "y",
        VALUES,
    )
    text = "\n".join(told.warnings)
    assert "'update' would change a variable that is now a constant" in text
    assert "'switch' would need a variable" in text
    assert "the lookup table 'table' stays empty: 'fill' fills it" in text
    assert "'queue' still feeds the graph" in text


def test_outputs_that_cannot_be_guessed_are_listed() -> None:
    text = TRAINING + "\nz = Softmax(product, T=float)\n"
    with pytest.raises(
        FreezeError, match=r"name of a node to outputs.*likely ones are z \(ends in Softmax\), y"
    ) as told:
        freeze(parse(text), None, VALUES)
    assert str(told.value.hint).endswith("outputs=z takes the likeliest")


def test_a_directory_with_several_graphs_or_none(tmp_path: pathlib.Path) -> None:
    write_checkpoint(tmp_path / "m", VALUES)
    with pytest.raises(FreezeError, match=r"a checkpoint in this directory and no graph.*say where the graph is"):
        freeze(tmp_path)
    objects = tmp_path / "objects"
    shutil.copytree(FIXTURES.parent / "saved_models" / "nested" / "variables", objects)
    with pytest.raises(FreezeError, match=r"say where the graph is.*; TensorFlow 2's tf.train.Checkpoint writes none"):
        freeze(objects)
    assert pocketgraph.identify(objects).next.endswith("then tf.saved_model.save(model, 'saved_model')")
    formats.save(parse(TRAINING), tmp_path / "a.pb")
    assert freeze_with_report(tmp_path).source == str(tmp_path / "a.pb")
    formats.save(parse(TRAINING), tmp_path / "b.pb")
    with pytest.raises(FreezeError, match=r"several graphs in this directory: a\.pb, b\.pb; say which one"):
        freeze(tmp_path)


def test_a_corrupt_value_stops_the_save(tmp_path: pathlib.Path) -> None:
    write_checkpoint(tmp_path / "m", VALUES)
    data = tmp_path / "m.data-00000-of-00001"
    raw = bytearray(data.read_bytes())
    raw[-1] ^= 1
    data.write_bytes(bytes(raw))
    frozen = freeze(parse(TRAINING), "y", tmp_path / "m")
    with pytest.raises(FormatError, match=r"tensor 'w' at offset .*: checksum does not match"):
        formats.save(frozen, tmp_path / "frozen.pb")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.data-00000-of-00001", "m.index"]


def test_the_work_grows_with_the_number_of_variables_and_no_faster() -> None:
    def lines_of_freezing(count: int) -> int:
        lines = ["x0 = Placeholder(dtype=float)"]
        for i in range(count):
            lines += [f"v{i} = VarHandleOp(dtype=float, shape=[2])", f"r{i} = ReadVariableOp(v{i}, dtype=float)"]
            lines.append(f"x{i + 1} = Add(x{i}, r{i}, T=float)")
        graph = parse("\n".join(lines))
        values = {f"v{i}": VALUES["v"] for i in range(count)}
        assert len(freeze(graph, f"x{count}", values)) == 3 * count + 1
        return lines_taken(lambda: freeze(graph, f"x{count}", values))

    assert lines_of_freezing(400) < 12 * lines_of_freezing(40)  # 100 times as many pairs


@needs_shared
@pytest.mark.parametrize(
    ("name", "output", "frozen"),
    [
        ("ckpt_v2_linreg_chain", "y_output", "frozen_linear_regression.pb"),
        ("ckpt_v2_enet_chain", "ENet/logits_to_softmax", "../enet_segmentation/semanticsegmentation_enet.pb"),
    ],
)
def test_real_checkpoints_give_the_constants_that_their_owners_shipped(name: str, output: str, frozen: str) -> None:
    ours, theirs = freeze(model_dir(name), output), formats.load(model_dir(name) / frozen)
    variables = [n.name for n in theirs if n.op == "Const" and n.name in ours and "value" in n.attrs]
    assert len(variables) >= 2
    for variable in variables:
        assert ours[variable].tensor.same_values(theirs[variable].tensor)
    assert set(theirs.nodes) <= set(ours.nodes)


@needs_shared
def test_outputs_of_real_training_directories_are_found() -> None:
    assert freeze_with_report(model_dir("ckpt_v2_linreg_chain")).graph.outputs == ("y_output",)
    assert freeze_with_report(model_dir("ckpt_v2_enet_chain")).graph.outputs == ("ENet/logits_to_softmax",)
    assert freeze_with_report(model_dir("ckpt_v2_fsrcnn_x2")).graph.outputs == ("NCHW_output",)


def test_arguments_and_results_of_a_function() -> None:
    graph = formats.load(FIXTURES / "functions" / "model.ckpt.meta")
    body = next(f for name, f in graph.functions.items() if name.startswith("loop_body"))
    assert len(function_def.arguments(body)) == len(function_def.results(body)) >= 5
    assert all(function_def.results(body))


@needs_shared
@pytest.mark.parametrize(
    ("path", "expected", "op"),
    [
        ("sm_half_plus_two_tf2/saved_model_half_plus_two_tf2_cpu/00000123", [0.5, 2.0], "AddV2"),
        ("sm_half_plus_two_cpu/saved_model_half_plus_two_cpu/00000123", [0.5, 2.0], "Add"),
    ],
)
def test_saved_models(path: str, expected: list[float], op: str) -> None:
    told = freeze_with_report(model_dir(path))
    values = sorted(float(told.graph[name].tensor.numpy()) for name in told.variables)
    assert values == expected
    assert op in {node.op for node in told.graph}
    assert not {"VarHandleOp", "VariableV2"} & {node.op for node in told.graph}
    (warning,) = told.warnings
    assert warning.startswith("the signature 'serving_default' is taken; others are classify_x")


@needs_shared
def test_a_function_that_trains_is_told() -> None:
    told = freeze_with_report(model_dir("sm_rust_regression") / "regression_savedmodel")
    assert any("(ResourceApplyGradientDescent to" in line and line.endswith("is dropped") for line in told.repaired)
    assert not any("would change a variable" in line for line in told.warnings)


def test_what_is_far_less_likely_than_another_is_not_among_the_outputs_to_choose_from() -> None:
    text = (
        TRAINING + "\nz = Softmax(product, T=float)\nn = Const(int32 1)\nleft = Range(n, n, n)\nold = Sum(product, n)\n"
    )
    with pytest.raises(FreezeError) as told:
        freeze(parse(text), None, VALUES)
    assert "z (ends in Softmax)" in str(told.value.hint)
    assert "old" not in str(told.value.hint)


def test_freeze_and_freeze_with_report_take_the_same() -> None:
    """Said in full by both: hints, help and errors name the function that was called."""
    plain, reporting = map(inspect.signature, (freeze, freeze_with_report))
    assert plain.parameters == reporting.parameters
    hints = get_type_hints(freeze)
    assert hints == {**get_type_hints(freeze_with_report), "return": Graph}
    with pytest.raises(TypeError, match=r"^freeze\(\) got an unexpected keyword argument 'output'"):
        freeze("model.pb", output="y")  # type: ignore[call-arg]
