"""freeze_graph as people type it: original flags, friendly ones, and mistakes."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph import formats
from pocketgraph.cli.main import main
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Tensor
from pocketgraph.graph.text_format import parse

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "freeze"
GRAPH = """
    x = Placeholder(dtype=float, shape=[?,2])
    w = VariableV2(dtype=float, shape=[2,2])
    y = MatMul(x, w, T=float)
    set = Assign(w, zero, T=float)
    zero = Const(float [[0.0, 0.0], [0.0, 0.0]])
"""
VALUES = {"w": Tensor.from_numpy(np.eye(2, dtype=np.float32))}


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    formats.save(parse(GRAPH), tmp_path / "graph.pb")
    formats.save(parse(GRAPH), tmp_path / "graph.pbtxt", text=True)
    write_checkpoint(tmp_path / "model.ckpt-3", VALUES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["freeze_graph", *arguments])
    assert stop.value.code == 0


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["freeze_graph", *arguments])
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    return int(stop.value.code or 0), said


@pytest.mark.parametrize("graph", ["graph.pb", "graph.pbtxt"])
@pytest.mark.parametrize("joined", [True, False])
def test_the_original_flags(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], graph: str, joined: bool) -> None:
    flags = {
        "--input_graph": graph, "--input_checkpoint": "model.ckpt-3", "--output_graph": "frozen.pb",
        "--output_node_names": "y", "--restore_op_name": "save/restore_all", "--filename_tensor_name": "save/Const:0",
        "--initializer_nodes": "", "--input_binary": "true", "--clear_devices": "true", "--checkpoint_version": "2",
    }  # fmt: skip
    arguments = [f"{k}={v}" for k, v in flags.items()] if joined else [part for item in flags.items() for part in item]
    run(*arguments)
    out = capsys.readouterr().out
    assert "Froze 1 variables.\nConverted 1 variables to const ops.\n3 ops in the final graph.\n" in out
    frozen = formats.load(folder / "frozen.pb")
    assert [node.op for node in frozen] == ["Placeholder", "Const", "MatMul"]
    assert frozen["w"].tensor.same_values(VALUES["w"])


def test_a_directory_is_enough(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["freeze", ".", "-o", "frozen.pbtxt"])
    out = capsys.readouterr().out
    assert "Froze ./graph.pb with ./model.ckpt-3" in out
    assert "Output: y" in out
    assert (folder / "frozen.pbtxt").read_text().startswith("node {")


@pytest.mark.parametrize("suffix", ["", ".index", ".data-00000-of-00001"])
def test_a_checkpoint_stands_for_its_directory(folder: pathlib.Path, suffix: str) -> None:
    run(f"model.ckpt-3{suffix}", "-o", "f.pb")
    assert formats.load(folder / "f.pb")["w"].tensor.same_values(VALUES["w"])


@pytest.mark.parametrize("values", ["values", "values/model.ckpt-3"])
def test_a_checkpoint_without_its_graph_takes_one_from_elsewhere(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], values: str
) -> None:
    (folder / "values").mkdir()
    for file in [*folder.glob("model.ckpt-3*"), *folder.glob("checkpoint")]:
        file.rename(folder / "values" / file.name)
    assert "say where the graph is with --input_graph" in failure(capsys, values, "-o", "f.pb")[1]
    run(values, "--input_graph=graph.pb", "--outputs=y", "-o", "f.pb")
    assert formats.load(folder / "f.pb")["w"].tensor.same_values(VALUES["w"])


def test_lists_with_blanks_and_the_new_spellings(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--input-graph=graph.pb", "--outputs= y , zero", "--variable_names_denylist=w", "-o", "f.pb")
    assert formats.load(folder / "f.pb")["w"].op == "VariableV2"
    capsys.readouterr()
    run("graph.pb", "--outputs=y", "--variable_names_whitelist=ww,w", "-o", "f.pb")
    told = "warning: no variable is called 'ww', so none is frozen or left by that name; did you mean 'w'?\n"
    assert capsys.readouterr().err == told
    run("graph.pb", "--outputs=y", "--variable_names_whitelist=other", "-o", "f.pb")
    assert formats.load(folder / "f.pb")["w"].op == "VariableV2"
    run("graph.pb", "--outputs=y", "--variable_names_whitelist=,", "-o", "f.pb")  # as in the original: of none
    assert formats.load(folder / "f.pb")["w"].op == "VariableV2"
    run("graph.pb", "--outputs=y", "--initializer_nodes=set", "-o", "f.pb")
    assert formats.load(folder / "f.pb")["w"].tensor.numpy().tolist() == [[0, 0], [0, 0]]


def test_a_meta_graph_and_its_saver(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, out = FIXTURES / "averages" / "model.ckpt", tmp_path / "f.pb"
    run(f"--input_meta_graph={base}.meta", f"--input_checkpoint={base}", "--outputs=y", "-o", str(out))
    assert f"Loaded meta graph file '{base}.meta\n" in capsys.readouterr().out
    expected = graph_file(FIXTURES / "averages", "frozen")
    assert formats.load(out)["w"].tensor.same_values(expected["w"].tensor)
    saver = tmp_path / "saver.pbtxt"
    saver.write_text('filename_tensor_name: "save/Const:0"\nrestore_op_name: "save/restore_all"\n')
    run(f"{base}.meta", f"--input_saver={saver}", "--outputs=y", "-o", str(out))
    assert formats.load(out)["v"].tensor.same_values(expected["v"].tensor)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to freeze was named; give a training directory"),
        (["graph.pb"], 2, "no place for the frozen graph was named; add -o frozen.pb"),
        (
            ["--input_graph=grap.pb", "-o", "f"],
            1,
            "Input graph file 'grap.pb' does not exist!; did you mean 'graph.pb'",
        ),
        (["--input_meta_graph=m.meta", "-o", "f"], 1, "Input meta graph file 'm.meta' does not exist!"),
        (["--input_saver=s", "graph.pb", "-o", "f"], 1, "Input saver file 's' does not exist!"),
        (["nowhere", "-o", "f"], 1, "'nowhere' does not exist"),
        (["graph.pb", "--checkpoint_version=3", "-o", "f"], 2, "Invalid checkpoint version (must be '1' or '2'): 3"),
        (["graph.pb", "--input_checkpoint=modl.ckpt-3", "-o", "f"], 1, "Input checkpoint 'modl.ckpt-3' doesn't exist!"),
        (["graph.pb", "--output_node_names=yy", "-o", "f"], 1, "yy is not in graph; did you mean 'y'?"),
        (["graph.pb", "--outputs=y", "-o", "no/f.pb"], 1, "the directory to write to does not exist"),
        (["graph.pb", "--outputs=y", "-o", "."], 1, "this is a directory, not a place for a file"),
        (["graph.pb", "--clear_devices=maybe", "-o", "f"], 2, "'maybe' is neither true nor false"),
        (["graph.pb", "--no_such_flag=1", "-o", "f"], 2, "no such option"),
        (
            ["--input_graph=graph.pb", "--output_node_names=y,", "zero", "-o", "f"],
            2,
            "two files to read, 'zero' and 'graph.pb'; pass one of them, and quote lists that have blanks",
        ),
    ],
)
def test_mistakes_are_one_line(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    status, said = failure(capsys, *arguments)
    assert message.lower() in said.lower()
    assert status == code
    assert not [p for p in folder.iterdir() if p.name in ("f", "no") or p.name.endswith(".part")]


def test_a_frozen_graph_is_not_frozen_twice(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(".", "-o", "frozen.pb")
    capsys.readouterr()
    status, said = failure(capsys, "frozen.pb", "--outputs=y", "-o", "again.pb")
    assert status == 1
    assert "You cannot freeze a graph twice" in said


@pytest.mark.parametrize("kind", ["missing", "damaged"])
def test_a_bad_data_file_leaves_no_output(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    data = folder / "model.ckpt-3.data-00000-of-00001"
    raw = data.read_bytes()
    data.unlink()
    if kind == "damaged":
        data.write_bytes(raw[:-1] + b"\x01")
    status, said = failure(capsys, ".", "-o", "frozen.pb")
    assert status == 1
    assert ("the data file is missing" if kind == "missing" else "checksum does not match") in said
    assert not list(folder.glob("frozen*"))


def test_a_wrong_file_as_graph(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cut.pb").write_bytes((folder / "graph.pb").read_bytes()[:-3])
    status, said = failure(capsys, "cut.pb", "--outputs=y", "-o", "f.pb")
    assert status == 1
    assert "cut.pb" in said
    (folder / "empty.pb").write_bytes(b"")
    assert failure(capsys, "empty.pb", "--outputs=y", "-o", "f.pb")[0] == 1


def test_warnings_go_to_stderr(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("graph.pb", "--outputs=set", "-o", "f.pb")
    said = capsys.readouterr()
    assert "warning: 'set' would change a variable that is now a constant" in said.err
    assert "warning" not in said.out


def test_the_command_starts_without_protobuf(folder: pathlib.Path) -> None:
    script = (
        "import sys; from pocketgraph.cli.freeze_graph import command; "
        "command(['graph.pb', '--outputs=y', '-o', 'f.pb'], standalone_mode=False); "
        "print([m for m in ('google.protobuf', 'PIL', 'ai_edge_litert', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
