"""``plan`` shows the parts and the reasons, as a page and as JSON."""

import json
import pathlib

import pytest
from click.testing import CliRunner

from pocketgraph.apps import model_plan
from pocketgraph.budgets import usable_processors
from pocketgraph.cli.look.plan import command
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.lowerings.nn import activations
from pocketgraph.runtime import Session

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[?, 8])
    w = Const(float[8, 2] [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2]])
    product = MatMul(x, w, T=float)
    text = AsString(product, T=float)
    hashed = StringToHashBucketFast(text, num_buckets=10)
""")


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "model.pb"
    save(GRAPH, path)
    return str(path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_page_says_what_runs_where_and_why(model: str) -> None:
    said = run(model, "--outputs=hashed", "--inputs=x=5,8")
    assert "hashed:0 from x:0 float[5, 8]" in said
    assert "why not on LiteRT" in said
    assert "AsString" in said
    assert "text" in run(model, "--outputs=hashed", "--nodes")


def test_a_model_that_litert_holds_whole(model: str) -> None:
    said = run(model, "--outputs=product")
    assert "litert" in said
    assert "LiteRT runs all of it." in said


def test_the_threads_are_the_session_s(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured of engines counts for sessions of as many threads."""
    asked: list[int | None] = []
    monkeypatch.setattr(model_plan, "Session", lambda *given, **more: asked.append(given[1]) or Session(*given, **more))
    for more in (["--threads=3"], []):
        run(model, "--outputs=product", *more)
    assert asked == [3, usable_processors()]


def test_json(model: str) -> None:
    found = json.loads(run(model, "--outputs=hashed", "--json"))
    assert found["feeds"] == {"x:0": {"dtype": "float", "shape": [1, 8]}}
    assert set(found["reasons"]) >= {"text", "hashed"}
    assert found["parts"][-1]["runs_on"] == "reference"


@pytest.mark.parametrize("text", ["x", "x=a", "x=-1,8"])
def test_wrong_shapes(model: str, text: str) -> None:
    with pytest.raises(UsageError, match="is no shape; write --inputs=NAME=1,224,224,3"):
        CliRunner().invoke(command, [model, f"--inputs={text}"], catch_exceptions=False)


def test_a_description_prints_itself() -> None:
    lines = str(Session(GRAPH).plan("hashed", {"x": (3, 8)})).splitlines()
    assert lines[0] == "hashed:0 from x:0 float[3, 8]"
    assert lines[1].startswith(("litert: ", "reference: "))
    assert any(line.startswith("not on litert: 1 AsString: ") for line in lines)
    whole = str(Session(GRAPH).plan("product", {"x": (3, 8)})).splitlines()
    assert whole[1:] == ["litert: 1 node, x:0 -> product:0"]


SMALL = parse("""
    x = Placeholder(dtype=float, shape=[4, 8])
    w = Const(float[8, 8] 20.0)
    m = MatMul(x, w, T=float)
    y = Relu(m, T=float)
""")


def test_check_says_of_each_part_whether_it_agrees(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETGRAPH_CACHE", str(tmp_path / "cache"))
    save(SMALL, path := str(tmp_path / "model.pb"))
    assert "the LiteRT part from 'm' to 'y': agrees with the reference engine" in run(path, "--check")
    monkeypatch.setenv("POCKETGRAPH_CACHE", str(tmp_path / "other"))
    monkeypatch.setitem(activations.ACTIVATIONS, "Relu", "RELU6")
    with pytest.warns(RuntimeWarning, match="gives other numbers"):
        result = CliRunner().invoke(command, [path, "--check", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["checked"] == [{"part": "the LiteRT part from 'm' to 'y'", "is": "wrong"}]


def test_strict_says_what_leaves_litert(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[64, 64])\ny = MatMul(x, x, T=float)\nz = Exp(y, T=float)")
    save(graph, path := str(tmp_path / "model.pb"))
    assert "LiteRT runs all of it." in run(path)
    assert "NaN gives 0" in json.loads(run(path, "--strict", "--json"))["reasons"]["z"]
