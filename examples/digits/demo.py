"""The walk, on a real training directory: freeze, look, strip and fold, shrink, verify, time, use.

Run it with ``make demo``. Each step is one or two lines of Python here, and prints the command line that does the same.
The training directory was left behind by train.py; nothing in it was tidied up for this.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import report

import pocketgraph
from pocketgraph.apps.label_image import Labeler, Prediction
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.formats import open_checkpoint

HERE = Path(__file__).resolve().parent
TRAINING = HERE / "training"
DATA = HERE / "data"
OUT = HERE / "out"
INPUT, OUTPUT = "image", "probabilities"

OPTIMIZE = """
    strip_unused_nodes(type=float, shape="1,8,8,1")
    remove_nodes(op=Identity, op=CheckNumerics)
    fold_constants(ignore_errors=true)
    fold_batch_norms
    fold_old_batch_norms
"""
NEXT = """{program} identify MY_MODEL                     # what it is, and what to type next
  $ {program} ship MY_MODEL --data=PHOTOS/ -o out/  # all of this in one call, judged on your data
  $ {program} view MY_MODEL -o view.html            # walk through it
  $ {program} help                                  # guides; --help tells all of a command"""
EIGHT_BIT = "quantize_weights(per_channel=true)"
ROUNDED = "round_weights(num_steps=256)"


def main() -> None:
    started = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    models = make_models()

    images, labels, golden = held_out()
    picture = OUT / "picture.npz"
    np.savez(picture, **{INPUT: images[0]})
    heading(
        "verify: is the small model still the same model?",
        f"pocketgraph verify {model('frozen')} {model('eight-bit')} --inputs={shown(picture)} --outputs={OUTPUT} "
        "--tolerance=0.1",
    )
    for name, tolerance in (("optimized", 1e-5), ("eight-bit", 0.1), ("rounded", 0.1)):
        outcome = pocketgraph.verify(models["frozen"], models[name], {INPUT: images[0]}, [OUTPUT], tolerance)
        apart = outcome.outputs[0].largest
        print(f"  frozen and {name}: {'the same' if outcome else 'NOT the same'}, {apart:.1e} apart on one picture")

    heading(
        "benchmark: what does each step buy?",
        f"pocketgraph benchmark_model --graph={model('optimized')} --max_num_runs=100",
    )
    rows = [training_row(images, labels, golden)]
    rows += [model_row(name, graph, images, labels, golden) for name, graph in models.items()]

    pictures = sorted((DATA / "png").glob("*.png"))
    heading(
        "label: what does it see in pictures it has never seen?",
        f"pocketgraph label_image --graph={model('eight-bit')} --labels={shown(DATA / 'labels.txt')} "
        f"{shown(DATA / 'png')}/*.png",
    )
    labeler = Labeler(models["eight-bit"], read_labels(DATA / "labels.txt"))
    answers = {picture: labeler.label(picture, top=1)[0] for picture in pictures}
    for picture, answer in list(answers.items())[:5]:
        print(f"  {picture.name}: {answer}")

    print()
    report.show(rows)
    page, picture = write_page(rows, answers)
    print(f"\nThe same as a picture: {shown(picture)}, as a page: {shown(page)}")
    print(f"All of it took {time.perf_counter() - started:.1f} s.")
    heading("next: a model of your own", NEXT.format(program=program()))
    if has_screen():
        webbrowser.open(picture.as_uri())


def make_models() -> dict[str, pocketgraph.Graph]:
    """Walks from the training directory to four models, writes each to OUT, and gives them back by name."""
    models = {}

    heading(
        "freeze: variables become constants, what only training needs falls away",
        f"pocketgraph freeze_graph {shown(TRAINING)} --output_node_names={OUTPUT} --output_graph={model('frozen')}",
    )
    models["frozen"] = pocketgraph.freeze(TRAINING, outputs=[OUTPUT])
    print(f"  {len(pocketgraph.load(TRAINING / 'graph.pbtxt'))} nodes before, {len(models['frozen'])} after")

    heading("summarize: what is in it?", f"pocketgraph summarize {model('frozen')}")
    summary = pocketgraph.summarize(models["frozen"])
    for end in (*summary.inputs[:1], *summary.outputs[:1]):
        print(f"  {end.name}: {end.op}, {end.dtype.name if end.dtype else '?'} {end.shape} ({end.why})")
    print(f"  {summary.const_parameters:,} parameters; the input queue is still in front of '{INPUT}'")

    heading(
        "strip and fold: the queue goes, batch norms melt into the convolutions",
        f"pocketgraph transform_graph --in_graph={model('frozen')} --out_graph={model('optimized')} "
        f"--inputs={INPUT} --outputs={OUTPUT} --transforms='{' '.join(OPTIMIZE.split())}'",
    )
    models["optimized"] = pocketgraph.transform(models["frozen"], OPTIMIZE, inputs=[INPUT], outputs=[OUTPUT])
    print(f"  {len(models['frozen'])} nodes before, {len(models['optimized'])} after")

    for name, rule in (("eight-bit", EIGHT_BIT), ("rounded", ROUNDED)):
        heading(
            f"shrink: {name} weights",
            f"pocketgraph transform_graph --in_graph={model('optimized')} --out_graph={model(name)} "
            f"--inputs={INPUT} --outputs={OUTPUT} --transforms='{rule}'",
        )
        models[name] = pocketgraph.transform(models["optimized"], rule, inputs=[INPUT], outputs=[OUTPUT])

    for name, graph in models.items():
        pocketgraph.save(graph, OUT / f"{name}.pb")
    return models


def training_row(images: np.ndarray, labels: np.ndarray, golden: np.ndarray) -> report.Row:
    """The training graph itself, run with the checkpoint's values fed to its variables."""
    graph = pocketgraph.load(TRAINING / "graph.pbtxt")
    prefix = next(TRAINING.glob("*.index")).with_suffix("")
    checkpoint = open_checkpoint(prefix)
    variables = {name: checkpoint[name].numpy() for name in checkpoint if name in graph}
    files = [TRAINING / "graph.pbtxt", *TRAINING.glob("*.index"), *TRAINING.glob("*.data-*")]
    return measure("training", graph, files, variables, images, labels, golden)


def model_row(
    name: str, graph: pocketgraph.Graph, images: np.ndarray, labels: np.ndarray, golden: np.ndarray
) -> report.Row:
    return measure(name, graph, [OUT / f"{name}.pb"], {}, images, labels, golden)


def measure(
    name: str,
    graph: pocketgraph.Graph,
    files: list[Path],
    always_fed: Mapping[str, np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    golden: np.ndarray,
) -> report.Row:
    """Runs every held-out image through a graph, one at a time, as a phone would."""
    seconds = []
    probabilities = np.empty_like(golden)
    with pocketgraph.Session(graph, threads=1) as session:
        session.run([OUTPUT], {INPUT: images[0], **always_fed})  # the first run plans and compiles
        for i, image in enumerate(images):
            start = time.perf_counter()
            (probabilities[i : i + 1],) = session.run([OUTPUT], {INPUT: image, **always_fed})
            seconds.append(time.perf_counter() - start)
    raw, gzipped = report.sizes(files)
    return report.Row(
        name,
        len(graph),
        raw,
        gzipped,
        accuracy=float(np.mean(probabilities.argmax(1) == labels)),
        difference=float(np.abs(probabilities - golden).max()),
        milliseconds=1000 * float(np.median(seconds)),
    )


def held_out() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images float32 [360, 1, 8, 8, 1] from 0 to 1, labels [360], TensorFlow's own probabilities [360, 10]."""
    with np.load(DATA / "held_out.npz") as data:
        images = data["images"].reshape(-1, 1, 8, 8, 1) / np.float32(255)
        labels = data["labels"]
    with np.load(DATA / "golden.npz") as data:
        return images, labels, data["probabilities"]


def write_page(rows: list[report.Row], answers: Mapping[Path, Prediction]) -> tuple[Path, Path]:
    """Writes the table with bars and the labelled pictures, as one HTML file and as a picture."""
    from pocketgraph.datasets import image_loading

    pictures = [
        (image_loading.read(path, channels=1)[..., 0], f"{a.label}, {a.score:.2%}") for path, a in answers.items()
    ]
    note = (
        "The training row is the graph as training left it, run up to the shipping output with the checkpoint's values "
        "fed to its variables. “Off TensorFlow by” is the largest difference of any probability, over all held-out "
        "images, from what TensorFlow 1.15 gave. Latency: median over the held-out images, one at a time, one thread."
    )
    page = OUT / "report.html"
    page.write_text(report.page(rows, pictures, note), encoding="utf-8")
    drawn = OUT / "report.png"
    report.drawing(rows, pictures[:10]).save(drawn)
    return page, drawn


def heading(title: str, command: str) -> None:
    print(f"\n\033[1m{title}\033[0m\n  $ {command}" if print_in_colour() else f"\n{title}\n  $ {command}")


def print_in_colour() -> bool:
    return sys.stdout.isatty()


def has_screen() -> bool:
    """Whether somebody sits in front of this machine and sees what is opened."""
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(has_display or sys.platform in ("win32", "darwin"))


def program() -> str:
    """How this environment's pocketgraph is called, whether it is on the path or not."""
    beside = Path(sys.executable).with_name("pocketgraph")
    return "pocketgraph" if shutil.which("pocketgraph") or not beside.exists() else shown(beside)


def shown(path: Path) -> str:
    """The path as one would type it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def model(name: str) -> str:
    return shown(OUT / f"{name}.pb")


if __name__ == "__main__":
    main()
