"""The walk on examples/digits: every variant of the model is as right as TensorFlow's own frozen graph of it."""

import glob
import os
import pathlib
import shlex
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph.apps.label_image import Prediction
from pocketgraph.cli.main import main
from support import ROOT, script

DIGITS = ROOT / "examples" / "digits"
PNGS = sorted((DIGITS / "data" / "png").glob("*.png"))
ENOUGH = 0.97  # of the held-out digits named rightly


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """examples/digits/demo.py as a module, writing into a folder of the tests."""
    module = script(DIGITS / "demo.py")
    module.OUT = tmp_path_factory.mktemp("digits")  # type: ignore[attr-defined]
    return module


@pytest.fixture(scope="module")
def models(demo: ModuleType) -> dict[str, pocketgraph.Graph]:
    return demo.make_models()


def probabilities(graph: pocketgraph.Graph, images: np.ndarray) -> np.ndarray:
    with pocketgraph.Session(graph) as session:
        return np.concatenate([session.run(["probabilities"], {"image": image})[0] for image in images])


@pytest.mark.parametrize(
    ("name", "tolerance", "fewer_bytes"),
    [
        ("frozen", 1e-5, 0.2),  # of the training graph and checkpoint
        ("optimized", 1e-5, 1.0),  # these of the frozen graph
        ("eight-bit", 0.15, 0.3),
        ("rounded", 0.15, 1.0),
    ],
)
def test_every_model_is_right(
    demo: ModuleType, models: dict[str, pocketgraph.Graph], name: str, tolerance: float, fewer_bytes: float
) -> None:
    images, labels, golden = demo.held_out()
    got = probabilities(pocketgraph.load(demo.OUT / f"{name}.pb"), images)
    assert np.mean(got.argmax(1) == labels) >= ENOUGH
    assert np.abs(got - golden).max() <= tolerance
    training = [DIGITS / "training" / "graph.pbtxt", *(DIGITS / "training").glob("*.data*")]
    before = training if name == "frozen" else [demo.OUT / "frozen.pb"]
    assert (demo.OUT / f"{name}.pb").stat().st_size < fewer_bytes * sum(path.stat().st_size for path in before)


def test_rounded_weights_compress(demo: ModuleType, models: dict[str, pocketgraph.Graph]) -> None:
    _, plain = demo.report.sizes([demo.OUT / "optimized.pb"])
    _, rounded = demo.report.sizes([demo.OUT / "rounded.pb"])
    assert rounded < 0.5 * plain


def test_what_training_needs_is_gone(models: dict[str, pocketgraph.Graph]) -> None:
    assert {node.op for node in models["optimized"]} == {
        "Placeholder", "Const", "Conv2D", "AddV2", "Relu", "MaxPool", "Reshape", "MatMul", "BiasAdd", "Softmax",
    }  # fmt: skip
    assert "QueueDequeueManyV2" in {node.op for node in models["frozen"]}


def test_the_training_graph_itself_runs_on_the_checkpoint(demo: ModuleType) -> None:
    row = demo.training_row(*(part[:20] for part in demo.held_out()))
    assert row.difference <= 1e-5
    assert row.accuracy >= ENOUGH


@pytest.mark.parametrize("name", ["frozen", "eight-bit"])
def test_label_image_names_the_pictures(
    demo: ModuleType, models: dict[str, pocketgraph.Graph], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(PNGS) == 12
    labels = DIGITS / "data" / "labels.txt"
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["label_image", f"--graph={demo.OUT / name}.pb", f"--labels={labels}", "-k1", *map(os.fspath, PNGS)])
    assert not stop.value.code
    blocks = capsys.readouterr().out.strip().split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [f"{path}:" for path in PNGS]
    assert [block.splitlines()[1].split()[0] for block in blocks] == [path.name.split("_")[0] for path in PNGS]


def test_the_demo_runs_and_so_do_the_commands_that_it_prints(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "OUT", tmp_path)
    own = {"MY_MODEL": f"{tmp_path}/frozen.pb", "--data=PHOTOS/": f"--data={DIGITS / 'data'}"}
    own |= {"out/": f"{tmp_path}/out/", "view.html": f"{tmp_path}/view.html"}
    demo.main()
    out = capsys.readouterr().out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("training", "frozen", "optimized", "eight-bit", "rounded"):
        assert any(line.startswith(f"{name} ") and line.rstrip().endswith("ms") for line in out.splitlines())
        assert f"<td>{name}</td>" in page
    for command in [line.strip() for line in out.splitlines() if line.strip().startswith("$ pocketgraph ")]:
        words = [own.get(word, word) for word in shlex.split(command, comments=True)[2:]]
        arguments = [path for word in words for path in sorted(glob.glob(word)) or [word]]
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert not stop.value.code, command
    assert page.count("<figure>") == len(PNGS)
    assert "http" not in page  # needs nothing from elsewhere


def test_the_walk_ends_with_a_picture(demo: ModuleType) -> None:
    row = demo.report.Row("frozen", 95, 172_207, 154_670, 0.9944, 7e-7, 0.013)
    found = {path: Prediction(3, "three", 0.9) for path in PNGS[:2]}
    page, picture = demo.write_page([row], found)
    with Image.open(picture) as drawn:
        assert drawn.size[0] == 960
        assert len(drawn.getcolors(1 << 16) or ()) > 20
    assert "three" in page.read_text(encoding="utf-8")
