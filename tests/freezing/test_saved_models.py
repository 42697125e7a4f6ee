"""SavedModels of TensorFlow 2: functions inlined, control flow kept or lowered, tables told of; against TensorFlow."""

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError, FreezeError, PocketgraphError, UsageError
from pocketgraph.formats import meta_graph
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.ready_models import ready
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime import Session
from support import assert_close, model_dir, model_info, needs_shared, shared

MODELS = pathlib.Path(__file__).parent.parent / "fixtures" / "saved_models"
CASES: dict[str, list[dict[str, Any]]] = json.loads((MODELS / "cases.json").read_text())
RUNNABLE = sorted(set(CASES) - {"tables"})
FUNCTIONAL = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}


def results(graph: Graph, feeds: dict[str, Any]) -> dict[str, Any]:
    """What the graph gives by the signature's keys."""
    graph = formats.from_bytes(formats.to_bytes(graph)).replace(signatures=graph.signatures)
    signature = graph.signatures["serving_default"]
    fed = {}
    for key, value in feeds.items():
        tensor = signature.inputs.get(key, "")  # what is bound or not needed is no input any more
        if tensor:
            dtype = graph[tensor.partition(":")[0]].dtype("dtype")
            fed[tensor] = np.array(value, dtype.numpy)
    return dict(zip(signature.outputs, Session(graph).run(list(signature.outputs.values()), fed), strict=True))


@pytest.mark.parametrize("control_flow", ["lower", "keep"])
@pytest.mark.parametrize("name", RUNNABLE)
def test_frozen_saved_models_compute_what_tensorflow_does(name: str, control_flow: Any) -> None:
    graph = freeze(MODELS / name, control_flow=control_flow, allow_training_batch_norm=True)
    for case in CASES[name]:
        got = results(graph, case["feeds"])
        assert got.keys() == case["results"].keys()
        for key, value in case["results"].items():
            expected = [text.encode() for text in value] if got[key].dtype == object else value
            assert_close(got[key], np.array(expected, got[key].dtype), 1e-5)


@pytest.mark.parametrize("name", RUNNABLE)
def test_lowered_graphs_have_no_function(name: str) -> None:
    graph = freeze(MODELS / name, control_flow="lower", allow_training_batch_norm=True)
    assert not graph.functions
    ops = {node.op for node in graph}
    assert not ops & (FUNCTIONAL | {"PartitionedCall", "StatefulPartitionedCall", "VarHandleOp", "ReadVariableOp"})
    assert freeze(MODELS / name, allow_training_batch_norm=True).nodes.keys() == graph.nodes.keys()  # the default


def test_kept_control_flow_keeps_only_the_functions_it_names() -> None:
    graph = freeze(MODELS / "loops", control_flow="keep")
    assert [node.op for node in graph if node.op in FUNCTIONAL] == ["While"]
    whole = meta_graph.read_saved_model(MODELS / "loops")[0].graph
    assert 0 < len(graph.functions) < len(whole.functions)


def test_a_value_that_does_not_go_round_enters_once() -> None:
    graph = freeze(MODELS / "loops")
    constant = [node for node in graph if node.op == "Enter" and node.attr("is_constant")]
    assert constant
    for node in constant:
        assert not any(user.op in ("Merge", "Switch") for user in graph.consumers[node.name])


def test_names_of_inputs_and_outputs_stay() -> None:
    graph = freeze(MODELS / "nested")
    assert graph.inputs == ("serving_default_x:0",)
    assert graph.outputs == ("StatefulPartitionedCall:0", "StatefulPartitionedCall:1")
    assert graph["StatefulPartitionedCall"].op == "IdentityN"
    assert graph["serving_default_x"].op == "Placeholder"


def test_a_signature_by_name() -> None:
    graph = freeze(MODELS / "nested", signature="serving_default", tags="serve")
    assert len(graph.outputs) == 2
    with pytest.raises(UsageError, match="no signature 'serve'; it has serving_default"):
        freeze(MODELS / "nested", signature="serve")
    with pytest.raises(UsageError, match="no graph has the tags 'train'; there is 'serve'"):
        freeze(MODELS / "nested", tags="train")


def test_a_bound_input_decides_a_functional_branch() -> None:
    with pytest.raises(
        FreezeError, match="there is no node 'default_training' to bind; did you mean 'serving_default_tr"
    ):
        freeze(MODELS / "training", bind={"default_training": False})
    by_key = freeze(MODELS / "training", bind={"training": False})
    graph = freeze(MODELS / "training", bind={"serving_default_training": "false"})
    assert by_key.nodes.keys() == graph.nodes.keys()
    assert not {node.op for node in graph} & (FUNCTIONAL | {"Switch", "Merge", "AssignSubVariableOp", "RandomUniform"})
    (norm,) = (node for node in graph if node.op.startswith("FusedBatchNorm"))
    assert norm.attr("is_training") is False
    case = CASES["training"][0]
    got = results(graph, case["feeds"])
    assert_close(got["y"], np.array(case["results"]["y"], np.float32), 1e-5)


def test_a_batch_norm_that_goes_on_training_is_refused() -> None:
    with pytest.raises(FreezeError, match=r"frozen with is_training=true.*bind serving_default_training=false"):
        freeze(MODELS / "training", bind={"serving_default_training": True})
    graph = freeze(MODELS / "training", bind={"serving_default_training": True}, allow_training_batch_norm=True)
    assert any(node.attr("is_training", True) for node in graph if node.op.startswith("FusedBatchNorm"))
    undecided = freeze(MODELS / "training")  # the run decides which branch is taken: that is not refused
    assert "serving_default_training:0" in undecided.inputs


def test_a_table_is_filled_in_the_frozen_graph_from_the_asset() -> None:
    told = freeze_with_report(MODELS / "tables")
    assert told.warnings == ()
    [table] = [node.name for node in told.graph if node.op.startswith("HashTable")]
    users = told.graph.consumers[table]
    [fill] = [node.name for node in users if node.op == "InitializeTableV2"]
    assert all(f"^{fill}" in node.inputs for node in users if node.name != fill)
    assert not any(node.op.startswith("InitializeTableFromTextFile") for node in told.graph)
    (given,) = [node for node in told.graph if node.op == "Placeholder"]
    words = (MODELS / "tables" / "assets" / "words.txt").read_bytes().split()
    feed = {given.name: np.array([*words, b"never seen"], object)}
    with Session(MODELS / "tables") as whole, Session(told.graph) as frozen:
        names = told.graph.outputs
        for expected, found in zip(whole.run(names, feed), frozen.run(names, feed), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_table_whose_asset_is_gone_is_told(tmp_path: pathlib.Path) -> None:
    shutil.copytree(MODELS / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "assets" / "words.txt").unlink()
    told = freeze_with_report(tmp_path / "tables")
    (warning,) = told.warnings
    assert "the lookup table" in warning
    assert "from the file 'assets/words.txt'" in warning
    runs = warning.split("stays empty: '")[1].split("'")[0]
    both = freeze_with_report(tmp_path / "tables", [*told.graph.outputs, runs])
    assert both.warnings == ()
    assert any(node.op.startswith("InitializeTableFromTextFile") for node in both.graph)


def goldens(folder: str, directory: str) -> dict[str, np.ndarray]:
    for name in (f"golden_{directory}_0.npz", "golden.npz"):
        if (model_dir(folder) / name).exists():
            with np.load(model_dir(folder) / name) as data:
                return {key: data[key] for key in data.files}
    return {}


CHANGED = ("incr_counter", "incr_counter_by", "reset_counter", "train", "b", "w")
"""Signatures that change variables, or whose golden result was taken after such a one: they have no frozen equal."""


def shared_signatures() -> list[tuple[str, str, str]]:
    """(folder, directory in it, signature) of every shared SavedModel that has a golden result."""
    folders = sorted(path.name for path in model_dir("").glob("sm_*")) if shared() else []
    return [
        (folder, model["dir"], signature)
        for folder in folders
        for model in model_info(folder)["models"]
        for signature in model["signatures"]
        if signature not in CHANGED
        and any(key.startswith(f"{signature}|out_") for key in goldens(folder, model["dir"]))
    ]


RECORDS = np.array(
    [b"\x0a\x0f\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04" + np.float32(x).tobytes() for x in (1, 2)], object
)
"""Two encoded Examples with a feature x: what the golden results of signatures without a golden input were made of."""


@needs_shared
@pytest.mark.parametrize(("folder", "directory", "signature"), shared_signatures())
def test_shared_saved_models_compute_the_golden_results(folder: str, directory: str, signature: str) -> None:
    tags = next(model["tags"] for model in model_info(folder)["models"] if model["dir"] == directory)
    frozen = freeze(model_dir(folder) / directory, tags=",".join(tags), signature=signature)
    assert not any(node.op in ("VariableV2", "VarHandleOp", "StatefulPartitionedCall") for node in frozen)
    arrays = goldens(folder, directory)
    chosen = frozen.signatures[signature]
    feeds = {}
    for tensor in chosen.inputs.values():
        node = frozen[tensor.partition(":")[0]]
        is_records = node.op == "Placeholder" and node.dtype("dtype") is STRING
        feeds[tensor] = RECORDS if is_records else arrays[f"{signature}|in_{tensor.replace(':', '_')}"]
    wanted = {tensor: arrays[f"{signature}|out_{tensor.replace(':', '_')}"] for tensor in chosen.outputs.values()}
    for value, expected in zip(Session(frozen).run(list(wanted), feeds), wanted.values(), strict=True):
        assert_close(value, expected, 1e-5)


@pytest.mark.parametrize("name", sorted(CASES))
def test_damaged_saved_models_say_so(name: str, tmp_path: pathlib.Path) -> None:
    """A flipped byte is found or does no harm: no error but our own, and no endless inlining."""
    random = np.random.default_rng(3)
    folder = tmp_path / name
    shutil.copytree(MODELS / name, folder)
    whole = (folder / "saved_model.pb").read_bytes()
    failed = 0
    for _ in range(20):
        data = bytearray(whole)
        data[random.integers(len(data))] ^= 1 << random.integers(8)
        (folder / "saved_model.pb").write_bytes(data)
        try:
            freeze(folder, control_flow="lower", allow_training_batch_norm=True)
        except PocketgraphError:
            failed += 1
    for _ in range(20):
        (folder / "saved_model.pb").write_bytes(whole[: random.integers(len(whole))])
        with pytest.raises(PocketgraphError):
            freeze(folder, control_flow="lower", allow_training_batch_norm=True)
    assert failed


def test_an_asset_that_climbs_out(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(MODELS / "tables", folder)
    data = (folder / "saved_model.pb").read_bytes()
    assert data.count(b"words.txt") == 1
    (folder / "saved_model.pb").write_bytes(data.replace(b"words.txt", b"../../etc"))
    with pytest.raises(FormatError, match=r"the asset '../../etc' is outside of the model's directory"):
        freeze(folder)


def test_two_variables_of_one_name() -> None:
    """``nested`` has two variables called w: TensorFlow's names do not tell them apart, its restore function does."""
    told = freeze_with_report(MODELS / "nested")
    assert len(told.variables) == 2
    assert sorted(told.graph[name].tensor.shape for name in told.variables) == [(3,), (3, 3)]


def test_the_commands_flags_for_saved_models(tmp_path: pathlib.Path) -> None:
    from click.testing import CliRunner

    from pocketgraph.cli.freeze_graph import command

    out = str(tmp_path / "frozen.pb")
    model = str(MODELS / "choices")
    flags = [f"--input_saved_model_dir={model}", "--saved_model_tags=serve", f"--output_graph={out}"]
    more = ["--output_node_names=StatefulPartitionedCall", "--input_graph=not_looked_at.pb"]
    result = CliRunner().invoke(command, [*flags, *more], catch_exceptions=False)
    assert result.exit_code == 0
    assert formats.load(out)["StatefulPartitionedCall"].op == "IdentityN"
    flags[1] = "--saved_model_tags=train"
    for call in (flags, [model, "--saved_model_tags=train", "-o", out]):
        with pytest.raises(UsageError, match="no graph has the tags 'train'; there is 'serve'"):
            CliRunner().invoke(command, call, catch_exceptions=False)


def test_several_signatures_are_told_of() -> None:
    folder = MODELS / "on_device"
    told = freeze_with_report(folder)
    assert told.warnings[0] == "all signatures were taken: infer, restore, save, train; signature=NAME takes one"
    assert not freeze_with_report(folder, signature="infer").warnings
    assert not [line for line in freeze_with_report(folder, "StatefulPartitionedCall").warnings if "signatures" in line]


def test_signatures_besides_the_main_one_are_told_of(tmp_path: pathlib.Path) -> None:
    """Keras writes the main one under a second key, which is none."""
    graph = parse("""
        main = Placeholder(dtype=float, shape=[?, 3])
        again = Placeholder(dtype=float, shape=[?, 3])
        code = Placeholder(dtype=float, shape=[?, 2])
        y = Relu(main, T=float)
        same = Relu(again, T=float)
        decoded = Neg(code, T=float)
    """)
    signatures = {
        "serving_default": Signature({"x": "main:0"}, {"y": "y:0"}),
        "serve": Signature({"x": "again:0"}, {"y": "same:0"}),
        "decode": Signature({"x": "code:0"}, {"y": "decoded:0"}),
    }
    formats.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    told = freeze_with_report(tmp_path / "model")
    assert told.warnings == ("the signature 'serving_default' is taken; others are decode (signature=NAME takes one)",)
    assert told.graph.outputs == ("y:0",)
    assert not freeze_with_report(tmp_path / "model", signature="decode").warnings
    assert not freeze_with_report(tmp_path / "model", "decoded").warnings


def test_a_signature_of_the_same_names_that_computes_something_else_is_told_of(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        main = Placeholder(dtype=float, shape=[?, 3])
        other = Placeholder(dtype=float, shape=[?, 3])
        y = Relu(main, T=float)
        code = Tanh(other, T=float)
    """)
    signatures = {
        "serving_default": Signature({"x": "main:0"}, {"out": "y:0"}),
        "embed": Signature({"x": "other:0"}, {"out": "code:0"}),
    }
    formats.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    (told,) = freeze_with_report(tmp_path / "model").warnings
    assert told.startswith("the signature 'serving_default' is taken; others are embed (")


def test_a_signature_that_takes_numbers_is_named_beside_one_of_texts(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        texts = Placeholder(dtype=string, shape=[?])
        tokens = Placeholder(dtype=float, shape=[?, 3])
        lengths = StringLength(texts)
        scores = Relu(tokens, T=float)
    """)
    signatures = {
        "serving_default": Signature({"texts": "texts:0"}, {"lengths": "lengths:0"}),
        "network": Signature({"tokens": "tokens:0"}, {"scores": "scores:0"}),
    }
    formats.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    (told,) = freeze_with_report(tmp_path / "model").warnings
    assert told.endswith("is taken; others are network (signature=network takes numbers, no texts)")


def test_a_signature_that_trains_is_told_with_the_others() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 2, 2, 1])
        v = VariableV2(dtype=float, shape=[1])
        read = Identity(v, T=float)
        none = Const(float[0] [])
        norm = FusedBatchNorm(x, read, read, none, none, T=float, is_training=true)
        y = Mul(x, read, T=float)
    """).replace(
        signatures={"fit": Signature({"x": "x:0"}, {"n": "norm:0"}), "go": Signature({"x": "x:0"}, {"y": "y:0"})}
    )
    values = {"v": Tensor.from_numpy(np.ones(1, np.float32))}
    with pytest.raises(
        FreezeError, match=r"batch norm 'norm'.*take one of the signatures fit, go, as in signature=fit"
    ):
        freeze(graph, checkpoint=values)
    assert "norm" not in freeze(graph, ["y"], checkpoint=values)


def test_a_signature_that_trains_is_left_out_where_several_others_are_left(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        noise = Placeholder(dtype=float, shape=[?, 3])
        image = Placeholder(dtype=float, shape=[?, 2])
        real = Placeholder(dtype=float, shape=[2])
        made = Relu(noise, T=float)
        judged = Tanh(image, T=float)
        path = Const(string "state")
        names = Const(string[1] ["w"])
        slices = Const(string[1] [""])
        saved = SaveV2(path, names, slices, real, dtypes=[float])
        loss = Neg(real, ^saved, T=float)
    """)
    signatures = {
        "train": Signature({"real": "real:0"}, {"loss": "loss:0"}),
        "generate": Signature({"noise": "noise:0"}, {"image": "made:0"}),
        "discriminate": Signature({"image": "image:0"}, {"score": "judged:0"}),
    }
    formats.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    found = ready(tmp_path / "model")
    assert sorted(found.graph.signatures) == ["discriminate", "generate"]
    assert found.notes[0] == (
        "the signatures 'discriminate', 'generate' are taken, as the others train, save or restore: train "
        "(signature=NAME takes one)"
    )


def test_the_file_of_a_saved_model_stands_for_its_directory() -> None:
    for name in ("tables", "choices"):
        one, other = freeze(MODELS / name / "saved_model.pb"), freeze(MODELS / name)
        assert print_graph(one) == print_graph(other)
