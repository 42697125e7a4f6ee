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
from pocketgraph.exporting.support import DEVICES, support, targets_of
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


SMALL = (
    "kws_dnn_s", "dotnet_matmul", "pocdoc", "vibcat", "kws_basic_lstm_s", "utensor_xor_keras", "bender_dense",
    "mnist_softmax_frozen", "rust_addition",
)  # fmt: skip


@needs_shared
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SMALL)
def test_real_models(name: str, target: str, tmp_path: pathlib.Path) -> None:
    if TARGETS[target].missing:
        pytest.skip(f"{target} needs {TARGETS[target].missing[0]}, of the extra {TARGETS[target].extra}")
    path = next(model_dir(name).glob("*.pb"))
    found = support(path, target)
    out = tmp_path / f"model{(TARGETS[target].suffixes or ('',))[0]}"
    assert (found.reasons, found.refusal) == refused(path, out, target)
    assert found.is_complete == out.exists()


# TensorFlow Mobile, and names of devices

OLD = """
    x = Placeholder(dtype=float, shape=[1, 4])
    data = Placeholder(dtype=string, shape=[])
    p = DecodeJpeg(data)
    i = Cast(x, SrcT=float, DstT=int64)
    m = Maximum(i, i, T=int64)
    s = Sum(m, axes, T=int64, Tidx=int32)
    axes = Const(int32 0)
    y = Relu(x, T=float)
    unused = MatrixInverse(z, T=float)
    z = Const(float[1, 1] [[1]])
"""


def test_tfmobile_names_ops_and_types() -> None:
    found = support(parse(OLD), "tfmobile", outputs=["y", "s", "p"])
    assert set(found.reasons) == {"p", "s", "unused"}
    assert found.reasons["p"] == "it is not among the ops that mobile builds link"
    assert found.reasons["s"] == "int64 is not among its types there (float, int32, bool)"
    hints = {obstacle.op: obstacle.hint for obstacle in found.obstacles}
    assert "strip_unused" in hints["DecodeJpeg"]
    assert "strip_unused_nodes" in hints["MatrixInverse"]
    assert "print_selective_registration_header" in hints["Sum"]
    fine = parse(FINE)
    assert support(fine, "tfmobile").is_complete


def test_tfmobile_and_functions(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(OLD), tmp_path / "old.pb")
    assert call("check", tmp_path / "old.pb", "--target=tfmobile", "--outputs=y") == 1
    said = capsys.readouterr().out
    assert said.startswith("tfmobile: no, 3 of 10 nodes stand in the way")
    assert call("check", tmp_path / "old.pb", "--target=tfmobile", "--outputs=nowhere") == 2


@needs_shared
@pytest.mark.parametrize("name", ["aiy_visionkit_detect", "mobilenet_v1_025_128_quant", "stylize_quantized"])
def test_what_ran_on_phones_is_taken(name: str) -> None:
    assert support(next(model_dir(name).glob("*.pb")), "tfmobile").is_complete


def test_devices_are_the_targets_that_they_take(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert targets_of("android") == ("tflite",)
    assert set(targets_of("ios")) <= set(DEVICES["ios"]) & set(TARGETS)
    save(parse(FINE), tmp_path / "fine.pb")
    assert call("check", tmp_path / "fine.pb", "--target=android,pi,tfmobile") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "tflite: yes, all of 3 nodes", "tfmobile: yes, all of 3 nodes", "android: yes, by tflite", "pi: yes, by tflite",
    ]  # fmt: skip
    assert call("check", tmp_path / "fine.pb", "--target=andriod") == 2
    assert "did you mean 'android'" in capsys.readouterr().err


def test_print_required_ops_says_which_form_a_finished_file_takes(tmp_path: pathlib.Path, capsys: Any) -> None:
    export(parse(FINE), tmp_path / "fine.tflite")
    assert call("print_required_ops", tmp_path / "fine.tflite") == 2
    assert "--form=litert" in capsys.readouterr().err
    assert call("print_required_ops", tmp_path / "fine.tflite", "--form=litert") == 0
