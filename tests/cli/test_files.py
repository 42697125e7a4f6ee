"""identify, convert, seal, unseal and convert_graphdef_memmapped_format on the command line."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import stat

import numpy as np
import pytest

import command_line
from pocketgraph import formats
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.freezing import ready_models
from pocketgraph.graph import DType, Graph, Node, Tensor, const
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared

IDENTITY = Node("y", "Identity", ["w"], {"T": DType.named("float")})
GRAPH = Graph([const("w", np.arange(4000, dtype=np.float32)), IDENTITY], outputs=["y"])
SIZE = len(formats.to_bytes(GRAPH))


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a call."""
    code = command_line.call(*arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    formats.save(GRAPH, tmp_path / "model.pb")
    return tmp_path / "model.pb"


def test_the_original_tool(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = model.with_name("model.mmap")
    code, _, err = call(capsys, "convert_graphdef_memmapped_format", f"--in_graph={model}", f"--out_graph={out}")
    assert (code, err) == (0, "Converted 1 nodes\n")
    assert formats.load(out)["w"].tensor.numpy()[3999] == 3999
    flags = [f"--in_graph={model}", f"--out_graph={out}", "--min_conversion_tensor_size=16001"]
    assert call(capsys, "convert_graphdef_memmapped_format", *flags) == (0, "", "Converted 0 nodes\n")


@pytest.mark.parametrize(
    ("flags", "code", "what"),
    [
        ([], 2, "in_graph graph can't be empty"),
        (["--in_graph=IN"], 2, "out_graph graph can't be empty"),
        (["--in_graph=IN", "--out_graph=OUT", "--min_conversion_tensor_size=0"], 2, "size must be > 0"),
        (["--in_graph=GONE", "--out_graph=OUT"], 1, "Failed to load graph at 'GONE' : there is no such file"),
        (["--in_graph=IN", "--out_graph=/nowhere/x"], 1, "Conversion failed /nowhere/x: the directory to write to"),
        (["--in_graph=IN", "--out_grph=OUT"], 2, "--out_grph"),
    ],
)
def test_its_errors(
    model: pathlib.Path, capsys: pytest.CaptureFixture[str], flags: list[str], code: int, what: str
) -> None:
    places = {"IN": str(model), "OUT": str(model.with_name("out"))}
    filled = [flag.replace("IN", places["IN"], 1) if flag.endswith("=IN") else flag for flag in flags]
    filled = [flag.replace("=OUT", f"={places['OUT']}") for flag in filled]
    got, out, err = call(capsys, "convert_graphdef_memmapped_format", *filled)
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert what in err


def test_identify_says_one_line_each(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = model.with_name("notes.txt")
    notes.write_text("hello\n")
    code, out, _ = call(capsys, "identify", model, notes)
    assert code == 0
    first, second = out.splitlines()
    assert (
        first == f"{model}: a GraphDef, 16.08 kB; 2 nodes, 1 constant of 16.00 kB; next: pocketgraph summarize {model}"
    )
    assert second == f"{notes}: a text file that describes no model, 6 B; next: give the model file instead"


def test_identify_freezes_a_graph_with_a_checkpoint_beside_it(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = VariableV2(dtype=float, shape=[2,2], container="", shared_name="")
        read = Identity(w, T=float)
        y = MatMul(x, read, T=float)
    """)
    formats.save(graph, tmp_path / "graph.pbtxt")
    text = ["identify", tmp_path / "graph.pbtxt"]
    assert f"next: pocketgraph summarize_graph --in_graph={tmp_path / 'graph.pbtxt'}" in call(capsys, *text)[1]
    write_checkpoint(tmp_path / "model.ckpt-7", {"w": Tensor.from_numpy(np.eye(2, dtype=np.float32))})
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    assert f"next: pocketgraph freeze_graph {tmp_path / 'graph.pbtxt'} -o frozen.pb" in call(capsys, *text)[1]
    code, out, _ = call(capsys, "freeze_graph", tmp_path / "graph.pbtxt", "-o", tmp_path / "frozen.pb")
    assert (code, "Output: y" in out) == (0, True)


def test_identify_what_is_missing_or_damaged(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "identify", model.with_name("modle.pb"))
    assert code == 1
    assert f"not there; next: did you mean '{model}'?" in out
    model.write_bytes(model.read_bytes()[:-100])
    code, out, _ = call(capsys, "identify", model)
    assert code == 1
    assert "cannot be read: the file is cut short" in out


def test_identify_as_json(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "convert", model, model.with_name("sm"), "--outputs=y")
    _, out, _ = call(capsys, "identify", "--json", model, model.with_name("sm"))
    file, folder = json.loads(out)
    assert (file["kind"], file["bytes"], file["graphs"][0]["const_bytes"]) == ("graph_def", SIZE, 16000)
    assert (folder["kind"], folder["graphs"][0]["signatures"]) == ("saved_model", ["serving_default"])
    assert folder["graphs"][0]["tags"] == ["serve"]


def test_identify_lists_the_variables_of_a_saved_model(capsys: pytest.CaptureFixture[str]) -> None:
    """Keras' Conv2D(4, 3) of three channels is the first layer."""
    folder = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models" / "augmentation"
    code, out, _ = call(capsys, "identify", "--variables", folder)
    assert code == 0
    assert "  _all_variables/0/.ATTRIBUTES/VARIABLE_VALUE float[3,3,3,4]\n" in out
    assert "  _all_variables/1/.ATTRIBUTES/VARIABLE_VALUE float[4]\n" in out
    assert "OBJECT_GRAPH" not in out  # a string beside them that says which object holds which


def test_identify_tells_the_graph_of_a_saved_model_with_damaged_variables(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models" / "augmentation"
    shutil.copytree(folder, tmp_path / "net")
    (tmp_path / "net" / "variables" / "variables.index").write_bytes(b"")
    code, out, _ = call(capsys, "identify", tmp_path / "net")
    assert code == 1
    assert "[serve] TensorFlow 2.21.0" in out
    assert "variables.index: the file is too short" in out


@needs_shared
@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "ckpt_v1_neo/model.ckpt",
            "a checkpoint of the old format V1 (variables only, no graph), 283 B, 2 tensors of 56 B",
        ),
        ("ckpt_v2_haensel/test_model", "26 tensors of 1.20 MB"),
        (
            "sm_half_plus_two_tf2/saved_model_half_plus_two_tf2_cpu/00000123",
            "[serve] TensorFlow 2.14.0, 29 nodes, 14 functions",
        ),
        ("metagraphs_scisharp/tensorflowlib.meta", ""),
    ],
)
def test_identify_real_files(name: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = model_dir(name)
    if not what:
        path = next(path.parent.glob("*.meta"))
        what = "a MetaGraphDef"
    code, out, _ = call(capsys, "identify", path)
    assert code == 0
    assert what in out


def test_convert_says_what_it_did(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.with_name("sm")
    code, _, err = call(capsys, "convert", model, target)
    assert (code, "name them: --outputs=NAME" in err, target.exists()) == (1, True, False)
    assert call(capsys, "convert", model, target, "--outputs=y") == (
        0, f"{model}: a GraphDef; {target}: written as saved_model\n", ""
    )  # fmt: skip
    back = model.with_name("back.pb")
    assert call(capsys, "convert", target, back)[2] == "left out: the signatures serving_default\n"
    assert list(formats.load(back).nodes) == ["w", "y"]
    code, _, err = call(capsys, "convert", model, model.with_name("x.jpg"))
    assert code == 2
    assert "the suffix .jpg says no form" in err


def test_seal_and_unseal(
    model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography")
    key, sealed, back = (model.with_name(name) for name in ("key", "model.sealed", "back.pb"))
    assert call(capsys, "seal", model, sealed, "--new-key", key)[0] == 0
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert call(capsys, "unseal", sealed, back, "--key-file", key)[0] == 0
    assert back.read_bytes() == model.read_bytes()
    monkeypatch.setenv("OTHER_KEY", "00" * 32)
    code, _, err = call(capsys, "unseal", sealed, back, "--key-env", "OTHER_KEY")
    assert (code, "the key is not the one" in err) == (1, True)
    assert call(capsys, "seal", model, sealed)[0] == 2
    code, _, err = call(capsys, "seal", model, sealed, "--new-key", key)
    assert (code, "a key is never overwritten" in err) == (2, True)
    code, _, err = call(capsys, "summarize", sealed)
    assert (code, "this is a sealed file" in err) == (2, True)


def test_identify_leads_from_a_training_directory_to_freezing_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "training"
    code, out, _ = call(capsys, "identify", folder)
    assert code == 0
    assert out.endswith(f"; next: pocketgraph freeze_graph {folder} -o frozen.pb --repair\n")


def test_identify_names_a_signature_where_none_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    folder = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "saved_models"
    for name, ending in (("on_device", "--signature=infer"), ("choices", f" {folder / 'choices'} -o frozen.pb")):
        code, out, _ = call(capsys, "identify", folder / name)
        assert (code, out.strip().endswith(ending)) == (0, True), out


@pytest.mark.parametrize("place", ["saved_models_with_tables/tf2", "saved_models/augmentation"])
def test_what_identify_proposes_for_a_saved_model_runs(
    place: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pathlib.Path(__file__).parent.parent / "fixtures" / place
    code, out, _ = call(capsys, "identify", folder)
    assert code == 0
    monkeypatch.chdir(tmp_path)
    assert call(capsys, *shlex.split(out.rpartition("next: pocketgraph ")[2]))[0] == 0
    assert (tmp_path / "frozen.pb").exists()


def test_identify_lists_the_variables_of_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    folder = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "training"
    code, out, _ = call(capsys, "identify", folder, "--variables")
    _, *lines = out.splitlines()
    store = formats.open_checkpoint(folder)
    assert (code, [line.split()[0] for line in lines]) == (0, sorted(store))
    sizes = ",".join(map(str, store[lines[0].split()[0]].shape))
    assert lines[0].endswith(f" float[{sizes}]")
    listed = json.loads(call(capsys, "identify", folder, "--json")[1])[0]["variables"]
    assert [one["name"] for one in listed] == sorted(store)


def test_identify_freezes_the_graph_of_a_training_once_for_all_its_files(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "training"
    shutil.copytree(pathlib.Path(__file__).parents[2] / "examples" / "digits" / "training", folder)
    tried: list[str] = []
    once = ready_models.ready
    monkeypatch.setattr(ready_models, "ready", lambda path: tried.append(path) or once(path))
    code, out, _ = call(capsys, "identify", folder, *sorted(folder.iterdir()))
    assert code == 0
    assert out.count("-o frozen.pb --repair") == 1 + len([*folder.iterdir()])
    (folder / "graph.pbtxt").touch()
    call(capsys, "identify", folder)
    metas = len([*folder.glob("*.meta")])
    assert len(tried) == 1 + metas + 1, "a graph that was written again is read again"


def test_identify_asks_a_whole_checkpoint_what_a_damaged_one_of_the_training_cannot_tell(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "training"
    shutil.copytree(pathlib.Path(__file__).parents[2] / "examples" / "digits" / "training", folder)
    for whole in [*folder.glob("model.ckpt-1200.*")]:
        shutil.copy(whole, folder / whole.name.replace("1200", "1"))
    (folder / "model.ckpt-1.data-00002-of-00003").write_bytes(b"")
    files = [folder / "model.ckpt-1.index", folder / "model.ckpt-1200.index", folder / "graph.pbtxt"]
    _, out, _ = call(capsys, "identify", *files)
    assert ["-o frozen.pb --repair" in line for line in out.splitlines()] == [False, True, True]


@needs_shared
def test_a_checkpoint_without_a_graph_is_told_where_one_goes(capsys: pytest.CaptureFixture[str]) -> None:
    folder = model_dir("ckpt_v2_sharded_little_ruan")
    _, line, _ = call(capsys, "identify", folder)
    assert "<" not in line  # a shell would read from a file of that name
    assert f"input_checkpoint={folder}, with the graph" in line


@pytest.mark.skipif(os.name == "nt", reason="click looks the home up there")
@pytest.mark.parametrize("flag", ["", "--in_graph="])
def test_a_home_is_looked_up_behind_a_flag_too(
    model: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flag: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.pb").write_bytes(model.read_bytes())
    assert (
        call(capsys, "transform_graph", f"{flag}~/mine.pb", "--out_graph=~/new.pb", "--transforms=remove_device")[0]
        == 0
    )
    assert (tmp_path / "new.pb").exists()


@pytest.mark.parametrize("arguments", [
    ["graph_to_dot", "--graph=nett.pb", "--dot_output=x.dot"],
    ["strip_unused", "--input_graph=nett.pb", "--output_graph=x.pb", "--output_node_names=y"],
    ["transform_graph", "--in_graph=net.pb", "--out_graph=x.pb", "--inputs=x", "--outputs=y", "--check",
     "--transforms=strip_unused_nodes", "--check_inputs=nett.npz"],
    ["transform_graph", "--in_graph=net.pb", "--out_graph=x.pb", "--outputs=y", "--transforms=none", "--rules=nett.py"],
    ["evaluate", "net.pb", "--data=nett.npz"],
    ["evaluate", "net.pb", "--data=nett.txt"],
    ["evaluate", "net.pb", "--data=net.npz", "--labels=nett.txt"],
])  # fmt: skip
def test_what_a_missing_file_may_be_called_is_said_by_every_command(
    arguments: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    formats.save(parse("x = Placeholder(dtype=float, shape=[?,2])\ny = Relu(x, T=float)"), "net.pb")
    np.savez("net.npz", x=np.ones((3, 2), np.float32))
    for name in ("net.py", "net.txt"):
        (tmp_path / name).touch()
    meant = next(word.rpartition("=")[2] for word in arguments if "nett." in word).replace("nett", "net")
    assert command_line.call(*arguments) in (1, 2)
    assert "did you mean 'net." in (error := capsys.readouterr().err)
    assert f"'{meant}'" in error


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device")
@pytest.mark.parametrize(
    "words",
    [
        "summarize /dev/zero",
        "quantize model.pb --calibrate=/dev/zero -o q.tflite",
        "wav_to_features --input_wav=/dev/zero --output_c_file=o.c",
        "print_selective_registration_header --graphs=/dev/zero --proto_fileformat=ops_list",
        "transform_graph model.pb --out_graph=o.pb --outputs=y"
        " --transforms=freeze_requantization_ranges(min_max_log_file=/dev/zero)",
        "dataset apply /dev/zero . -o sorted",
        "label_image --graph=model.pb --image=/dev/zero --labels=/dev/zero",
    ],
)
def test_a_device_is_never_read_to_its_end(
    words: str, model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    code, _, err = call(capsys, *words.split())
    assert code == 1
    assert "/dev/zero: this is a device, which may never end, and no file" in err


def test_an_error_is_no_longer_than_a_screen(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], model: pathlib.Path
) -> None:
    (tmp_path / "list.txt").write_text("x" * 1_000_000)
    code, _, err = call(capsys, "quantize", model, f"--calibrate={tmp_path / 'list.txt'}", "-o", tmp_path / "q.tflite")
    assert code == 1
    assert len(err.splitlines()[-1]) < 4100
    assert "there is no file 'xxx" in err


@pytest.mark.parametrize(
    "typed",
    [
        ["summarize_graph", "--in_graph=a.pb"], ["graph_to_dot", "--graph=a.pb"], ["benchmark_model", "--graph=a.pb"],
        ["transform_graph", "--in_graph=a.pb", "--out_graph=c.pb"], ["freeze_graph", "--input_graph=a.pb"],
        ["wav_to_features", "--input_wav=a.pb", "--output_c_file=c.c"],
    ],
)  # fmt: skip
def test_two_files_for_what_reads_one_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, typed: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    formats.save(GRAPH, "a.pb")
    code, _, told = call(capsys, *typed, "b.pb")
    assert code == 2
    assert "two files to read, 'b.pb' and 'a.pb'; pass one of them" in told
