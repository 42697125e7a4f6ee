"""What eight bits cost on real data: right answers, agreement with the float model, divergence, noise, size and time.

    python benchmarks/quantized_accuracy.py FOLDER [--only photos pictures digits mnist keywords] [--splits 3]
        [--official PY] [--recordings WORDS]

FOLDER holds the models and data of the catalogue, one directory each (``mobilenet_v1_025_128``, ``data_flower_photos``,
``data_mnist_test``, ``kws_ds_cnn_s``, ``data_speech_wavs`` …); what is missing is left out. Every model is quantized
with the defaults of ``pocketgraph quantize`` on 100 samples and judged on others. Photos are split anew, by chance, for
each of the splits, and mean and worst figures are shown. There are few recordings, so they are varied: shifted, faster
or slower, louder or quieter, with noise; of those, no classes are known. ``--recordings`` names a folder with a folder
of WAV files for each word, of which right answers are counted as well: tools/make_spoken_words.py makes one with speech
synthesizers, and recordings of the usual word sets are kept in such folders. With ``--official``, the interpreter of an
environment that has TensorFlow 2, the official converter's full int8 form of the first split stands beside ours, in the
same run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import statistics
import subprocess
import tempfile
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure import table
from pocketgraph import Session, formats, freeze
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison

CALIBRATED = 100
RATE = 16000  # samples of a recording of one second
VARIATIONS = 400  # of recordings
MOST_JUDGED = 10000
TEN = ("_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
UNKNOWN = 1
WORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("kws_dnn_s", "kws_ds_cnn_s", "kws_crnn_s", "kws_basic_lstm_s"), TEN),
    "speech_conv_actions_pardeep": ("_silence_", "_unknown_", "bed", "", "cat"),  # heard; its file does not say them
}
"""The words of each network, in the order of its scores."""
DIGITS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "digits"
CONVERT = """
import sys, numpy as np, tensorflow as tf
graph, source, result, samples, out = sys.argv[1:]
data = np.load(samples)
maker = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(graph, [source], [result], {source: list(data.shape[1:])})
maker.optimizations = [tf.lite.Optimize.DEFAULT]
maker.representative_dataset = lambda: ([sample] for sample in data)
maker.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
maker.inference_input_type = maker.inference_output_type = tf.int8
open(out, 'wb').write(maker.convert())
"""


@dataclass
class Case:
    """A model and its data.

    Attributes:
        name: of the model.
        graph: the frozen graph.
        samples: float32 [samples, …], each of the input's shape.
        output, source: the tensors to compute and to feed; None for the graph's own.
        labels: the class of each sample, if known.
        values: what other placeholders are set to.
        is_split: whether samples are split by chance; otherwise the first ones are calibrated with.
        file: where the graph came from.
    """

    name: str
    graph: Graph
    samples: Array
    output: str | None = None
    source: str | None = None
    labels: Array | None = None
    values: dict[str, Any] = field(default_factory=dict)
    is_split: bool = False
    file: pathlib.Path | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="to quantize and judge with; times are of one")
    parser.add_argument("--official", metavar="PY")
    parser.add_argument("--recordings", type=pathlib.Path, metavar="WORDS")
    parser.add_argument("--set", nargs="*", default=[], metavar="OPTION=VALUE", help="of quantize, as in widen=0")
    arguments = parser.parse_args()
    how = {name: _value(text) for name, _, text in (item.partition("=") for item in arguments.set)}
    for kind in arguments.only:
        rows = []
        told = kind == "keywords" and arguments.recordings
        for case in known_words(arguments.folder, arguments.recordings) if told else KINDS[kind](arguments.folder):
            options = QuantizationOptions(threads=arguments.threads, **how)
            rows += judged(case, options, arguments.splits if case.is_split else 1, arguments.official)
        if rows:
            table(f"{kind}: float beside eight bits", HEADER, rows)


HEADER = (
    "model", "judged on", "top-1 float", "8-bit", "most lost", "agrees", "worst", "KL", "worst", "SNR dB", "worst",
    "size", "float ms", "8-bit ms", "time",
)  # fmt: skip


def photos(folder: pathlib.Path) -> Iterator[Case]:
    """Networks for photos, on flowers; their classes are others, so that only agreement counts."""
    place = folder / "data_flower_photos"
    for name in ("mobilenet_v1_025_128", "mobilenet_v1_025_128_quant", "tfl_quantized_graph"):
        file = _model(folder, name)
        if file is None or not place.exists():
            continue
        graph = formats.load(file)
        program = canonicalize(lowered_graph(graph)[0])
        inputs = tuple(ModelInput(value.name, value.shape, np.dtype(np.float32)) for value in program.inputs)
        data = open_dataset(place, inputs, PictureScaling(127.5, 127.5))
        yield Case(name, graph, np.stack([sample[0] for sample in data.samples()]), is_split=True, file=file)


def digits(folder: pathlib.Path) -> Iterator[Case]:
    """The example, on the images that its training never saw."""
    held = np.load(DIGITS / "data" / "held_out.npz")
    graph = freeze(DIGITS / "training", ["probabilities"])
    images = (held["images"].astype(np.float32) / 255).reshape(-1, 1, 8, 8, 1)
    yield Case("digits example", graph, images, labels=held["labels"], is_split=True)


def mnist(folder: pathlib.Path) -> Iterator[Case]:
    """Networks for MNIST, on its test images."""
    place = folder / "data_mnist_test"
    if not place.exists():
        return
    with gzip.open(place / "t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 784).astype(np.float32) / 255
    with gzip.open(place / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
    dropout = {f"dropout{end}/random_uniform/RandomUniform": 1 - 1e-7 for end in ("", "_1")}
    for name, output, values in (
        ("mnist_fishbonelsy", None, {}),
        ("mnist_softmax_frozen", None, {}),
        ("mnist_panjinquan", "layer/final_result:0", {}),
        ("utensor_mnist_demo", "logits:0", dropout),
    ):
        file = _model(folder, name)
        if file is not None:
            yield Case(name, formats.load(file), images, output, None, labels, values, file=file)
    model = folder / "sm_mnist_conv" / "mnist_conv_model"
    if model.exists():
        yield Case("sm_mnist_conv", freeze(model), images.reshape(-1, 1, 28, 28, 1), None, None, labels)


def keywords(folder: pathlib.Path) -> Iterator[Case]:
    """Networks for spoken words, from the tensor behind the spectrogram on, on variations of a few recordings."""
    sounds = list(recordings(folder))
    return hearing(folder, sounds, {}) if sounds else iter(())


def known_words(folder: pathlib.Path, spoken: pathlib.Path) -> Iterator[Case]:
    """The same on recordings of known words, one folder a word; words that a network was not made for are unknown."""
    files = sorted(spoken.glob("*/*.wav"))
    if not files:
        raise SystemExit(f"{spoken} has no folders of WAV files, one for each word")
    classes = {
        name: np.array([words.index(path.parent.name) if path.parent.name in words else UNKNOWN for path in files])
        for name, words in WORDS.items()
    }
    return hearing(folder, [path.read_bytes() for path in files], classes)


def hearing(folder: pathlib.Path, sounds: list[bytes], classes: dict[str, Array]) -> Iterator[Case]:
    for name in WORDS:
        file = _model(folder, name)
        if file is None:
            continue
        graph = formats.load(file)
        with Session(graph) as session:
            heard = np.stack([session.run(["Mfcc:0"], {"wav_data:0": sound})[0] for sound in sounds])
        yield Case(name, graph, heard, None, "Mfcc:0", classes.get(name), is_split=True, file=file)


PICTURES = {
    "cifar_frozen": ("Input:0", "Output:0", (32, 32, 3), 0, 1),
    "customvision_recipe": ("Placeholder:0", "loss:0", (227, 227, 3), 0, 255),
    "espcn_x3": ("IteratorGetNext:0", "NCHW_output:0", (32, 40, 1), 0, 1),
    "fsrcnn_small_x4": ("IteratorGetNext:0", "NCHW_output:0", (32, 40, 1), 0, 1),
    "mbti_model": ("input_1:0", "dense_2/Softmax:0", (64, 64, 1), 0, 1),
    "music_score_classifier": ("conv2d_1_input:0", "output_node/Softmax:0", (128, 128, 3), 0, 1),
    "poets_retrained_128": ("input:0", "final_result:0", (128, 128, 3), -1, 1),
    "smile_tfdroid": ("I:0", "O:0", (64, 64, 1), 0, 1),
    "unity_gridworld": ("observation_0:0", "dense_2/MatMul:0", (32, 32, 1), 0, 1),
}
"""Other networks for pictures: input, output, [height, width, channels], and what black and white are."""


def pictures(folder: pathlib.Path) -> Iterator[Case]:
    """The flower photos again, in the sizes of networks that were made for other pictures."""
    from PIL import Image

    files = sorted((folder / "data_flower_photos").glob("*/*.jpg"))
    for name, (source, output, (height, width, channels), black, white) in PICTURES.items():
        file = _model(folder, name)
        if file is None or not files:
            continue
        taken = []
        for path in files:
            with Image.open(path) as picture:
                small = picture.convert("L" if channels == 1 else "RGB").resize(
                    (width, height), Image.Resampling.BILINEAR
                )
            scaled = np.asarray(small, np.float32).reshape(1, height, width, channels) / 255
            taken.append(scaled * np.float32(white - black) + np.float32(black))
        yield Case(name, formats.load(file), np.stack(taken), output, source, is_split=True, file=file)


KINDS = {"photos": photos, "pictures": pictures, "digits": digits, "mnist": mnist, "keywords": keywords}


def recordings(folder: pathlib.Path) -> Iterator[bytes]:
    """Seconds of sound as WAV files, varied by chance, always the same ones."""
    spoken = []
    for path in sorted([*folder.glob("data_speech_wavs/*.wav"), *folder.glob("data_tflite_support_images/*.wav")]):
        with wave.open(str(path)) as file:
            if file.getframerate() == RATE and file.getsampwidth() == 2:
                taken = np.frombuffer(file.readframes(file.getnframes()), np.int16)[:: file.getnchannels()]
                pieces = max(len(taken) // RATE, 1)
                spoken += [taken[piece * RATE : (piece + 1) * RATE] / 32768 for piece in range(pieces)]
    random = np.random.default_rng(0)
    for index in range(VARIATIONS if spoken else 0):
        sound = spoken[index % len(spoken)]
        speed = random.uniform(0.85, 1.2)
        stretched = np.interp(np.arange(0, len(sound) - 1, speed), np.arange(len(sound)), sound)
        varied = np.zeros(RATE)
        shift = int(random.integers(-1600, 1600))
        start = max(shift, 0)
        cut = stretched[start - shift : RATE - shift]
        varied[start : start + len(cut)] = cut
        varied = varied * random.uniform(0.4, 1.5) + random.normal(0, 10 ** random.uniform(-4.5, -1.8), RATE)
        yield _wav(np.clip(varied * 32768, -32768, 32767).astype("<i2"))


def judged(case: Case, options: QuantizationOptions, splits: int, official: str | None) -> list[list[str]]:
    """Quantizes and judges a model; one row of the table, and another for the official converter's."""
    output = [case.output] if case.output else None
    shapes = {case.source: case.samples.shape[1:]} if case.source else None
    if shapes is None:
        inputs = [value.name for value in lowered_graph(case.graph, output, None, case.values)[0].inputs]
        shapes = {inputs[0]: case.samples.shape[1:]}
    program = canonicalize(lowered_graph(case.graph, output, shapes, case.values)[0])
    comparisons, hits = [], []
    theirs: list[list[str]] = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(case.samples)) if case.is_split else None
        chosen = np.arange(len(case.samples)) if order is None else order
        first, rest = chosen[:CALIBRATED], chosen[CALIBRATED : CALIBRATED + MOST_JUDGED]
        held = [[np.ascontiguousarray(case.samples[index])] for index in first]
        outcome = quantize_program(program, lambda held=held: iter(held), len(held), options)
        exact = ProgramRunner(program, threads=options.threads)
        coded = ProgramRunner(outcome.converted.program, threads=options.threads)
        comparison, right = compare(case, rest, exact, coded, outcome.converted.program.inputs)
        comparisons.append(comparison)
        hits.append(right)
        if split == 0:
            files = {"float": model_bytes(program), "8-bit": model_bytes(outcome.converted.program)}
            notes = outcome.notes
            if official and case.file:
                theirs = beside(case, program, held, rest, exact, files, official)
    times = timed(files, case.samples[0])
    ours = row(case.name, len(rest) * splits, comparisons, hits, files, times)
    for note in notes:
        print(f"{case.name}: {note}")
    return [ours, *theirs]


def compare(
    case: Case, rest: Array, exact: ProgramRunner, coded: Any, inputs: Sequence[Any] | None
) -> tuple[Comparison, tuple[ClassAccuracy, ClassAccuracy] | None]:
    """Both models on samples that were not calibrated with."""
    comparison, right = Comparison(), (ClassAccuracy(), ClassAccuracy())
    for index in rest:
        sample = [np.ascontiguousarray(case.samples[index])]
        wanted = exact(sample)[0]
        given = coded.run(sample)[0] if inputs is None else coded.numbers(as_fed(sample, inputs))[0]
        comparison.add(wanted, given)
        if case.labels is not None:
            right[0].add(wanted, int(case.labels[index]))
            right[1].add(given, int(case.labels[index]))
    return comparison, right if case.labels is not None else None


def beside(
    case: Case,
    program: Any,
    held: list[list[Array]],
    rest: Array,
    exact: ProgramRunner,
    files: dict[str, bytes],
    python: str,
) -> list[list[str]]:
    """The official converter's full int8 form, from the same samples; no row where it refuses."""
    with tempfile.TemporaryDirectory() as place:
        samples, out = pathlib.Path(place, "samples.npy"), pathlib.Path(place, "official.tflite")
        np.save(samples, np.stack([sample[0] for sample in held]))
        names = [program.inputs[0].name.split(":")[0], (case.output or program.outputs[0].name).split(":")[0]]
        command = [python, "-c", CONVERT, str(case.file), *names, str(samples), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{case.name}: the official converter refuses: {done.stderr.strip().splitlines()[-1][:150]}")
            return []
        model = LiteRTModel(str(out))
        comparison, right = compare(case, rest, exact, model, None)
        both = {"float": files["float"], "8-bit": out.read_bytes()}
        return [row("  official int8", len(rest), [comparison], [right], both, timed(both, case.samples[0]))]


def row(
    name: str,
    count: int,
    comparisons: list[Comparison],
    hits: list[tuple[ClassAccuracy, ClassAccuracy] | None],
    files: dict[str, bytes],
    times: dict[str, float],
) -> list[str]:
    """A line of the table: means over the splits, and the worst of them."""
    agreed, divergences = [one.agreement for one in comparisons], [one.kl for one in comparisons]
    decibels = [one.snr for one in comparisons]
    known = [pair for pair in hits if pair]
    right = [f"{100 * statistics.mean(pair[at].top1 for pair in known):.2f}" for at in (0, 1)] if known else ["", ""]
    lost = f"{100 * max(exact.top1 - coded.top1 for exact, coded in known):.2f}" if known else ""
    return [
        name, str(count), *right, lost,
        f"{100 * statistics.mean(agreed):.2f}", f"{100 * min(agreed):.2f}",
        f"{statistics.mean(divergences):.2g}", f"{max(divergences):.2g}",
        f"{statistics.mean(decibels):.1f}", f"{min(decibels):.1f}",
        f"{len(files['8-bit']) / len(files['float']):.3f}",
        f"{times['float'] * 1e3:.3f}", f"{times['8-bit'] * 1e3:.3f}", f"{times['8-bit'] / times['float']:.2f}",
    ]  # fmt: skip


def timed(files: dict[str, bytes], sample: Array) -> dict[str, float]:
    """Median seconds of each model on one thread, in turn."""
    runners = {name: PlainRunner(data, 1) for name, data in files.items()}
    found: dict[str, list[float]] = {name: [] for name in files}
    for _ in range(9):
        for name, runner in runners.items():
            feed = np.ascontiguousarray(sample).astype(_input_type(files[name]))
            found[name].append(runner.seconds([feed], 0.03, 200))
    return {name: min(times) for name, times in found.items()}


def _input_type(data: bytes) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_content=data).get_input_details()[0]["dtype"]


def _model(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    description = folder / name / "model.json"
    return folder / name / json.loads(description.read_text())["file"] if description.exists() else None


def _wav(values: Array) -> bytes:
    import io

    with io.BytesIO() as sink:
        with wave.open(sink, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(values.tobytes())
        return sink.getvalue()


def _value(text: str) -> Any:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
