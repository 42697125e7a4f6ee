"""``pocketgraph export`` and the commands that read what it writes."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

import pocketgraph
from pocketgraph.cli.main import Commands, group
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.graph import const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from support import ROOT, model_dir, model_info, needs_shared


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(group, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def classifier(tmp_path: pathlib.Path) -> pathlib.Path:
    """A classifier of plain pictures by their color, with pictures and labels beside it."""
    graph = parse("""
        picture = Placeholder(dtype=float, shape=[?, 8, 8, 3])
        axes = Const(int32 [1, 2])
        mean = Mean(picture, axes, T=float, Tidx=int32, keep_dims=false)
        w = Const(float 0.0)
        product = MatMul(mean, w, T=float)
        scores = Softmax(product, T=float)
    """)
    weights = np.float32(4 * np.eye(3))
    graph = graph.map_nodes(lambda node: const("w", weights, FLOAT) if node.name == "w" else node)
    pocketgraph.save(graph, tmp_path / "net.pb")
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    rng = np.random.default_rng(5)
    for number, name in enumerate(("red", "green", "blue")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for count in range(3):
            pixels = rng.integers(0, 120, (10, 12, 3), dtype=np.uint8)
            pixels[..., number] = 250
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{count}.png")
    return tmp_path


def exported(folder: pathlib.Path, *arguments: str) -> Result:
    out = folder / "net.tflite"
    return run(
        "export", folder / "net.pb", "-o", out, f"--labels={folder / 'labels.txt'}", "--input_mean=127.5",
        "--input_std=127.5", f"--data={folder / 'photos'}", *arguments,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [(), ("--mode=static",), ("--mode=static", "--io=int8"), ("--mode=static", "--io=uint8"), ("--mode=float16",)],
)
def test_what_is_written_is_read_by_every_command(classifier: pathlib.Path, arguments: tuple[str, ...]) -> None:
    result = exported(classifier, *arguments)
    assert "serving_default:" in result.output
    assert re.search(r"written: .*net.tflite, [\d,]+ bytes", result.output)
    model, net = classifier / "net.tflite", classifier / "net.pb"
    photo = classifier / "photos" / "green" / "0.png"
    assert run("label_image", f"--graph={model}", photo).output.startswith("green (1): ")
    assert "scores" in run("summarize", model).output
    assert "LiteRT runs all of it" in run("plan", model).output
    assert "equal" in run("verify", net, model, "--tolerance=0.05").output
    assert "count=3" in run("benchmark_model", f"--graph={model}", "--max_num_runs=3").output
    judged = run(
        "evaluate", net, model, f"--data={classifier / 'photos'}", f"--labels={classifier / 'labels.txt'}",
        "--input_mean=127.5", "--input_std=127.5",
    ).output  # fmt: skip
    assert "net.tflite  100.00%" in judged
    (facts,) = json.loads(run("identify", "--json", model).output)
    assert facts["kind"] == "tflite"
    assert facts["litert"]["metadata"]["labels"] == ["red", "green", "blue"]
    assert list(facts["litert"]["signatures"]["serving_default"]["inputs"]) == ["picture"]
    assert "mean 127.5 std 127.5, 3 labels" in run("identify", model).output


def test_sealed_files(classifier: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.chdir(classifier)  # where proposed commands write
    exported(classifier)
    key = classifier / "model.key"
    run("seal", classifier / "net.tflite", classifier / "net.sealed", f"--new-key={key}")
    said = run("verify", classifier / "net.tflite", classifier / "net.sealed", f"--key-file={key}").output
    assert "equal" in said
    sealed = classifier / "net.sealed"
    proposed = run("summarize", sealed, f"--key-file={key}").output.partition("next:\n")[2].splitlines()
    assert proposed[0].strip() == f"pocketgraph benchmark_model --graph={sealed} --key-file={key}"
    for line in proposed:
        run(*shlex.split(line)[1:])


def test_what_has_no_graphdef_form(classifier: pathlib.Path) -> None:
    exported(classifier)
    with pytest.raises(PocketgraphError, match="the operators of a LiteRT file have no GraphDef form"):
        run("convert", classifier / "net.tflite", classifier / "back.pb")
    assert not (classifier / "back.pb").exists()


@pytest.mark.parametrize("arguments", [
    ("export", "MODEL", "-o", "back.tflite"), ("export", "MODEL", "-o", "back.onnx"),
    ("export", "MODEL", "-o", "back", "--target=c"), ("quantize", "MODEL", "--mode=dynamic", "-o", "small.tflite"),
    ("ship", "MODEL", "-o", "shipped"),
    ("transform_graph", "MODEL", "-o", "back.pb", "--transforms=strip_unused_nodes"),
    ("strip_unused", "--input_graph=MODEL", "--output_graph=back.pb", "--input_node_names=x", "--output_node_names=y"),
    ("optimize_for_inference", "--input=MODEL", "--output=back.pb", "--input_names=x", "--output_names=scores"),
    ("convert_graphdef_memmapped_format", "--in_graph=MODEL", "--out_graph=back.mmap"),
    ("print_selective_registration_header", "MODEL"),
])  # fmt: skip
def test_finished_files_are_not_made_again(
    classifier: pathlib.Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(classifier)
    given = [argument.replace("MODEL", str(classifier / "net.tflite")) for argument in arguments]
    monkeypatch.chdir(classifier)
    with pytest.raises(UsageError) as caught:
        run(*given)
    said = f"a .tflite file is finished already; {arguments[0]} starts from the graph that it was made from"
    assert f"{said}; give the frozen graph or the SavedModel" in str(caught.value)
    assert not list(classifier.glob("back*"))


def test_bad_calls(classifier: pathlib.Path) -> None:
    (classifier / "labels.txt").write_text("red\ngreen\n")
    with pytest.raises(UsageError, match="there are 2 labels and 3 scores"):
        exported(classifier)
    net, out = classifier / "net.pb", classifier / "x.tflite"
    for arguments, said in (
        (("--mode=int7",), "--mode is one of"),
        (("--input_shape=picture:1,a",), "is not NAME:1,224,224,3"),
        (("--input_shape=1,9,9,3",), "does not fit"),
        (("--mode=static",), "eight bits need samples"),
        (("--target=onyx",), "there is no target 'onyx'"),
        (("--target=web",), "there are tflite, c, onnx, coreml; pocketgraph app makes projects"),
    ):
        with pytest.raises(UsageError, match=said):
            run("export", net, "-o", out, *arguments)
    assert not out.exists()


def test_help_lists_targets_and_their_options() -> None:
    text = run("export", "--help").output
    assert "tflite (.tflite)" in text
    assert "--mode float32|float16|dynamic|static" in text
    assert Commands().get_command(None, "export") is not None  # type: ignore[arg-type]


@needs_shared
def test_the_guides_mfcc_is_the_graphs() -> None:
    """The code of docs/shipping.md for the numbers in front of a speech model gives what the graph computes."""
    text = (ROOT / "docs" / "shipping.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def mfcc" in block)
    names: dict[str, Any] = {}
    exec(compile(code, "shipping.md", "exec"), names)
    name = "speech_conv_actions_pardeep"
    wave = np.sin(np.arange(16000) / 7.0) * np.linspace(0, 0.5, 16000)
    with pocketgraph.Session(model_dir(name) / model_info(name)["file"]) as session:
        feeds = {"decoded_sample_data:0": wave[:, None].astype(np.float32), "decoded_sample_data:1": np.int32(16000)}
        (wanted,) = session.run("Mfcc", feeds)
    np.testing.assert_allclose(names["mfcc"](wave.astype(np.float32)), wanted, atol=2e-4)


def test_an_output_without_numbers_is_not_proven(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        a = Abs(x, T=float)
        n = Neg(a, T=float)
        y = Log(n, T=float)
        z = Relu(x, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "nan.pb")
    made = run("export", tmp_path / "nan.pb", "-o", tmp_path / "nan.tflite", "--outputs=y,z")
    assert made.exit_code == 0
    lines = {line.split()[0]: line for line in made.stdout.splitlines() if line.startswith("  ")}
    assert "not proven: it is NaN or infinite in 4 of its 4 elements" in lines["y"]
    assert "--data" in lines["y"]
    assert "difference" not in lines["y"]
    assert "difference at most 0" in lines["z"]
    assert "not proven for y" in repr(pocketgraph.export(graph, tmp_path / "other.tflite", outputs=["y"]))

    app = run("app", "pi", tmp_path / "nan.pb", "-o", tmp_path / "app")
    said = "not proven: the golden result 'y' is NaN or infinite in 4 of its 4 elements"
    assert said in app.stderr
    assert said in (tmp_path / "app" / "README.md").read_text()

    checked = run(
        "transform_graph", f"--in_graph={tmp_path / 'nan.pb'}", f"--out_graph={tmp_path / 'folded.pb'}", "--inputs=x",
        "--outputs=y", "--transforms=fold_constants", "--check",
    )  # fmt: skip
    assert "not proven: 'y' is NaN or infinite" in checked.stderr
