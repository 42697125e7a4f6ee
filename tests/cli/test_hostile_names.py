"""Names of a model are shown as they are: the terminal does not obey them, and rich does not read them as markup."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.errors import PocketgraphError, TransformError, printable
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.runtime import Session
from support import ROOT

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\r[bold]x[/][/red]<script>"
COMMANDS = (
    "summarize", "summarize_graph", "identify", "plan", "transform_graph", "verify", "check", "view", "graph_to_dot",
)  # fmt: skip


def outcome(capfd: Any, *arguments: object) -> str:
    """All that a command printed; its code may be any but that of a traceback."""
    assert call(*arguments) in (0, 1, 2)
    said = capfd.readouterr()
    return str(said.out + said.err)


def check(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text.replace("\r\n", "\n"))
    assert "Traceback" not in text


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", ["name", "op", "device", "input"])
def test_names_are_printed_escaped(tmp_path: pathlib.Path, command: str, where: str, capfd: Any) -> None:
    y = f"y{HOSTILE}" if where == "name" else "y"
    op = f"Neg{HOSTILE}" if where == "op" else "Neg"
    source = f"x{HOSTILE}" if where == "input" else "x"
    graph = Graph([
        Node("x", "Placeholder", [], {"dtype": FLOAT}),
        Node(y, op, [source], {"T": FLOAT}, f"/cpu{HOSTILE}" if where == "device" else ""),
    ])  # fmt: skip
    path = tmp_path / "model.pb"
    path.write_bytes(pocketgraph.formats.to_bytes(graph))
    more = {
        "transform_graph": ["-o", str(tmp_path / "out.pb"), "--transforms=sort_by_execution_order", f"--outputs={y}"],
        "verify": [str(path)],
        "view": ["-o", str(tmp_path / "out.html")],
        "graph_to_dot": ["-o", str(tmp_path / "out.dot")],
    }
    check(outcome(capfd, command, path, *more.get(command, [])))


def test_errors_and_printed_values_are_escaped(capfd: Any) -> None:
    assert str(PocketgraphError(f"no {HOSTILE}", where=HOSTILE, hint=HOSTILE)).isprintable()
    assert printable("näïve ñame\n\tΣ") == "näïve ñame\n\tΣ"
    assert printable("\udc80\x1b") == "\\udc80\\x1b"
    node = Node("p", "Print", ["x", "x"], {"T": FLOAT, "U": (FLOAT,), "message": HOSTILE.encode()})
    with Session(Graph([Node("x", "Placeholder", [], {"dtype": FLOAT}), node]), engine="reference") as session:
        session.run(["p"], {"x": np.ones(2, np.float32)})
    check(capfd.readouterr().err)


def test_commands_print_by_one_door() -> None:
    folder = ROOT / "src" / "pocketgraph" / "cli"
    doors = [path.name for path in folder.rglob("*.py") if re.search(r"click\.echo\(|rich\.markup", path.read_text())]
    assert doors == ["output.py"]


@pytest.mark.parametrize("command", COMMANDS[:5])
def test_a_port_of_thousands_of_digits_is_none(tmp_path: pathlib.Path, command: str, capfd: Any) -> None:
    graph = Graph([
        Node("x", "Placeholder", [], {"dtype": FLOAT}), Node("y", "Neg", ["x:" + "9" * 5000], {"T": FLOAT})
    ])  # fmt: skip
    path = tmp_path / "model.pb"
    path.write_bytes(pocketgraph.formats.to_bytes(graph))
    more = ["-o", str(tmp_path / "out.pb"), "--transforms=sort_by_execution_order", "--outputs=y"]
    check(outcome(capfd, command, path, *(more if command == "transform_graph" else [])))
    with Session(graph) as session, pytest.raises(PocketgraphError):
        session.run(["y"], {"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("seed", range(8))
def test_damaged_resume_files_are_as_none(tmp_path: pathlib.Path, seed: int) -> None:
    path = tmp_path / "resume.npz"
    findings = ResumeState(path, "key")
    findings.put("stage", {"a": np.arange(100.0), "b": np.ones((3, 4), np.int8)})
    findings.save()
    data, draw = path.read_bytes(), np.random.default_rng(seed)
    for _ in range(150):
        changed = bytearray(data)
        for at in draw.integers(0, len(data), draw.integers(1, 4)):
            changed[at] ^= 1 << draw.integers(0, 8)
        path.write_bytes(bytes(changed[: draw.integers(1, len(data))]) if draw.random() < 0.2 else bytes(changed))
        found = ResumeState(path, "key").get("stage")
        assert not found or np.array_equal(found.get("a", np.arange(100.0)), np.arange(100.0))


def test_memory_that_is_not_there_is_an_error_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise MemoryError

    from pocketgraph.transforms.parts.constant_folding import constant_evaluation

    monkeypatch.setattr(constant_evaluation, "_as_tensor", none)
    graph = parse(
        "x = Placeholder(dtype=float)\na = Const(float[3,1] 1.0)\nb = Const(float[1,3] 1.0)\n"
        "m = MatMul(a, b, T=float)\ny = Add(x, m, T=float)"
    )
    with pytest.raises(TransformError, match="there is not enough memory"):
        pocketgraph.transform(graph, "fold_constants", inputs=["x"], outputs=["y"])


def test_a_path_that_begins_with_a_dash_is_no_option_in_what_to_type_next(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    pocketgraph.save(parse("x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)"), "-net.pb")
    said = outcome(capfd, "identify", "--", "-net.pb") + outcome(capfd, "summarize", "--", "-net.pb")
    typed = re.findall("pocketgraph (summarize|verify|benchmark_model) (.*)", said)
    assert len(typed) == 3
    for command, words in typed:
        assert "such option" not in outcome(capfd, command, *words.replace("small.pb", "./-net.pb").split())


@pytest.mark.skipif(os.name == "nt", reason="its names of files have no bytes of another locale")
@pytest.mark.parametrize("encoding", ["", "ascii:strict", "latin-1"])
def test_names_of_any_language_are_printed_where_the_locale_has_none(encoding: str, tmp_path: pathlib.Path) -> None:
    pocketgraph.save(parse("x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)"), tmp_path / "übung.pb")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    if encoding:
        environment |= {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"}
    for command, name in (("summarize", "übung.pb"), ("identify", "übunge.pb"), ("plan", "übunge.pb")):
        done = subprocess.run(
            [sys.executable, "-m", "pocketgraph", command, name], env=environment, capture_output=True, cwd=tmp_path
        )
        said = (done.stdout + done.stderr).decode("latin-1" if encoding == "latin-1" else "utf-8")
        assert "übung.pb" in said, said
        assert "udc" not in said
        assert "Traceback" not in said
    assert printable(os.fsdecode(b"b\xfc\x1b.pb")) == r"b\udcfc\x1b.pb"  # of no encoding that is known
