"""check: its answer is that of export, node by node."""

from __future__ import annotations

import json
import pathlib
from importlib.util import find_spec
from typing import Any

import pytest

from command_line import call
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.exporting import export
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.support import support
from pocketgraph.exporting.targets import TARGETS
from pocketgraph.formats import save
from pocketgraph.graph.text import parse
from support import model_dir, needs_shared

FINE = "x = Placeholder(dtype=float, shape=[1, 4])\ny = Relu(x, T=float)\nz = Softmax(y, T=float)"
TEXTS = """
    x = Placeholder(dtype=float, shape=[1, 4])
    y = Relu(x, T=float)
    s = AsString(y, T=float)
    t = StringToNumber(s, out_type=float)
    z = Add(t, y, T=float)
"""
OPEN = "x = Placeholder(dtype=float, shape=[?, 4])\ny = Relu(x, T=float)"


def refused(source: Any, out: pathlib.Path, target: str) -> tuple[dict[str, str], str]:
    """What export says against a model: by node, or of it as a whole."""
    try:
        export(source, out, target=target)
    except LackingError as error:
        return error.reasons, ""
    except PocketgraphError as error:
        return {}, str(error)
    return {}, ""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [FINE, TEXTS, OPEN])
def test_the_answer_is_that_of_export(text: str, target: str, tmp_path: pathlib.Path) -> None:
    if any(find_spec(package) is None for package in TARGETS[target].needs):
        pytest.skip(f"{target} needs {TARGETS[target].needs}, of the extra {TARGETS[target].extra}")
    graph = parse(text)
    found = support(graph, target)
    out = tmp_path / f"model{(TARGETS[target].suffixes or ('',))[0]}"
    assert (found.reasons, found.refusal) == refused(graph, out, target)
    assert found.is_complete == out.exists()
    if text == TEXTS:
        assert not found.is_complete
        assert {"s", "t"} & set(found.reasons)


def test_the_command(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(FINE), tmp_path / "fine.pb")
    save(parse(TEXTS), tmp_path / "texts.pb")
    before = sorted(tmp_path.iterdir())
    assert call("check", tmp_path / "fine.pb") == 0
    assert capsys.readouterr().out == "tflite: yes, all of 3 nodes\n"
    assert call("check", tmp_path / "texts.pb") == 1
    said = capsys.readouterr().out
    assert said.startswith("tflite: no, ")
    assert "AsString x 1 ('s'): " in said
    assert call("check", tmp_path / "texts.pb", "--json") == 1
    (answer,) = json.loads(capsys.readouterr().out)
    judged = {node["name"]: node["supported"] for node in answer["nodes"]}
    assert (judged["y"], judged["s"]) == (True, False)
    assert call("check", tmp_path / "texts.pb", "--outputs=y") == 0
    assert sorted(tmp_path.iterdir()) == before


def test_bad_calls(tmp_path: pathlib.Path, capsys: Any) -> None:
    with pytest.raises(UsageError, match="there is no target 'tflit'"):
        support(parse(FINE), "tflit")
    assert call("check", tmp_path / "none.pb") == 1
    assert "there is no such file" in capsys.readouterr().err


@needs_shared
@pytest.mark.parametrize(
    "name", ["kws_dnn_s/DNN_S.pb", "dotnet_matmul/frozen_saved_model.pb", "pocdoc/frozen_model.pb"]
)
def test_real_models(name: str, tmp_path: pathlib.Path) -> None:
    path = model_dir(name.split("/")[0]) / name.split("/")[1]
    found = support(path, "tflite")
    assert (found.reasons, found.refusal) == refused(path, tmp_path / "model.tflite", "tflite")
