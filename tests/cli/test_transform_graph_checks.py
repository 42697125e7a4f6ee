"""transform_graph --check, --report and --rules, and the command transforms."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from command_line import call
from pocketgraph import formats
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import tool

GRAPH = """
    x = Placeholder(dtype=float, shape=[1,2])
    kept = Identity(x, T=float)
    y = Tanh(kept, T=float)
"""
RULES = '''
from pocketgraph.transforms.tool import transform

@transform
def spoil(graph):
    """Makes Sigmoid of Tanh."""
    return graph.map_nodes(lambda node: node.replace(op="Sigmoid") if node.op == "Tanh" else node)
'''


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "model.pb"
    formats.save(parse(GRAPH), path)
    return str(path)


def transform(model: str, out: pathlib.Path, *more: str) -> int:
    return call("transform_graph", model, f"--out_graph={out}", "--inputs=x", "--outputs=y", *more)


def test_a_check_that_passes(model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert transform(model, tmp_path / "out.pb", "-t", "remove_nodes(op=Identity)", "--check") == 0
    assert (
        capsys.readouterr().err
        == "checked 1 transform: results differ by at most 0 of their peak\n3 nodes, 108 B -> 2 nodes, 75 B\n"
    )


def test_a_check_that_fails(model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, out, report = tmp_path / "mine.py", tmp_path / "out.pb", tmp_path / "report.json"
    rules.write_text(RULES)
    try:
        code = transform(
            model, out, "-t", "remove_nodes(op=Identity) spoil", f"--rules={rules}", "--check", f"--report={report}"
        )
    finally:
        for module in {rule.function.__module__ for rule in tool.loaded().values()}:
            if module.startswith("pocketgraph_rules"):
                tool.forget(module)
    error = capsys.readouterr().err
    assert code == 1
    assert error.startswith("error: spoil: it changes the output 'y'")
    assert error.endswith("the difference starts at node 'y'\n")
    assert not out.exists()
    assert [entry["rule"] for entry in json.loads(report.read_text("utf-8"))["rules"]] == ["remove_nodes", "spoil"]


def test_given_inputs_are_used(model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.ones((3, 3), np.float32))
    code = transform(model, tmp_path / "out.pb", "-t", "remove_nodes(op=Identity)", f"--check_inputs={feeds}")
    assert code == 2
    assert "Cannot feed value of shape (3, 3)" in capsys.readouterr().err


def test_a_report_as_a_page(model: str, tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.html"
    assert transform(model, tmp_path / "out.pb", "-t", "remove_nodes(op=Identity)", f"--report={report}") == 0
    assert "<li>kept" in report.read_text("utf-8")


def test_a_report_of_a_call_that_is_stopped_says_so(
    model: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would else praise the old graph that it lies beside."""
    report = tmp_path / "report.html"

    def stopped(*_: object, **__: object) -> None:
        assert not report.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("pocketgraph.formats.save", stopped)
    transform(model, tmp_path / "out.pb", "-t", "remove_nodes(op=Identity)", f"--report={report}")
    assert "nothing was written" in report.read_text("utf-8")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--report=report.txt", "error: --report: a report is .html or .json, not 'report.txt'"),
        ("--check_tolerance=0.1", "error: --check_tolerance is for --check; pass --check as well"),
        ("--rules=nowhere.py", "error: nowhere.py: there is no such file"),
        ("--check_inputs=nowhere.npz", "error: nowhere.npz: there is no such file"),
    ],
)
def test_wrong_calls(
    model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], option: str, message: str
) -> None:
    assert transform(model, tmp_path / "out.pb", "-t", "remove_device", option) == 2
    assert capsys.readouterr().err.startswith(message)
    assert not (tmp_path / "out.pb").exists()


def test_the_list_of_transforms(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("transforms") == 0
    shown = capsys.readouterr().out
    assert "strip_unused_nodes" in shown
    assert call("transforms", "--json") == 0
    pages = json.loads(capsys.readouterr().out)
    assert [page["name"] for page in pages] == tool.names()
    assert all(page["summary"] for page in pages)
    sizes = next(page for page in pages if page["name"] == "quantize_weights")["parameters"]
    assert sizes[0]["name"] == "minimum_size"
    assert sizes[0]["default"] == 1024
    assert sizes[0]["meaning"] == "constants of fewer elements stay as they are."


def test_all_about_one_transform(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("transforms", "fold_batch_norms") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("fold_batch_norms: Folds")
    assert "Given:\n  x = Placeholder(dtype=float)\n" in shown
    assert "  scaled = MatMul(x, w, T=float)\n" in shown
    assert "Differs from the original: " in shown


def test_an_unknown_transform(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("transforms", "fold_batch_norm") == 2
    assert "did you mean 'fold_batch_norms'" in capsys.readouterr().err
