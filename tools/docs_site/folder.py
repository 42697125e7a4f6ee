"""The folder in which pages run: small models, photos and recordings under the names that the pages use.

``photos/`` holds drawn pictures of three made-up flowers, ``frozen.pb`` a small net that tells them apart (input ``x``,
output ``softmax``), ``training/`` a graph and a checkpoint of it, ``speech.pb`` a net of drawn weights that takes
recordings, ``birds.csv`` a table of made-up birds, ``reviews.pb`` a net that reads the texts of ``reviews.csv`` and
``reviews/``, and ``digits/`` what the training of examples/digits left behind.
Nothing is downloaded.
"""

from __future__ import annotations

import pathlib
import shutil
import zipfile

import numpy as np
from PIL import Image, ImageDraw

from docs_site.blocks import ROOT
from docs_site.reviews import write_reviews
from pocketgraph import Session, export, save, trainable, transform
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.audio.wav import encode_wav

CLASSES = ("daisy", "roses", "tulips")
COLOURS = {"daisy": (240, 240, 230), "roses": (210, 40, 60), "tulips": (240, 190, 40)}
SIDE = 48  # pixels, of what the net takes
PHOTO = 192  # pixels, of the files
EACH = 45  # photos of a class: 100 to calibrate with, and some to judge by
WORDS = ("_silence_", "_unknown_", "yes", "no")
RATE = 16000  # samples a second
DROPOUT = """
    is_training/input = Const(bool false)
    is_training = PlaceholderWithDefault(is_training/input, dtype=bool, shape=[])
    switch = Switch(pool, is_training, T=float)
    share = Const(float 0.5)
    dropped = Mul(switch:1, share, T=float)
    kept = Merge(switch, dropped, T=float, N=2)
"""
"""What the training graph has in the place of an Identity; its dropout is half of each value."""


def make(folder: pathlib.Path) -> pathlib.Path:
    """Fills an empty folder, which it makes where it is not there."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    pictures = {name: [flower(rng, name) for _ in range(EACH)] for name in CLASSES}
    for name in CLASSES:
        (folder / "photos" / name).mkdir(parents=True)
        for index, picture in enumerate(pictures[name]):
            large(picture).save(folder / "photos" / name / f"{name}_{index:02}.jpg", quality=92)
    (folder / "flowers").symlink_to("photos", target_is_directory=True)
    for name, file in zip(CLASSES, ("photo.ppm", "photo.jpg", "test.jpg"), strict=True):
        large(flower(rng, name)).save(folder / file)
    write_models(folder, classifier(pictures))
    np.savez(folder / "feeds.npz", x=scaled(pictures["roses"][:1]))
    write_recordings(folder, rng)
    write_table(folder / "birds.csv")
    write_reviews(folder)
    for example in (ROOT / "examples").iterdir():
        (folder / "examples").mkdir(exist_ok=True)
        (folder / "examples" / example.name).symlink_to(example)
    shutil.copytree(ROOT / "examples" / "digits" / "training", folder / "digits")
    return folder


def copied(made: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy of a folder that was made, in an empty one."""
    return pathlib.Path(shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True))


def write_models(folder: pathlib.Path, graph: Graph) -> None:
    """The classifier in the forms that pages begin with, and the training that it came from."""
    for name in ("frozen.pb", "graph.pb", "model.pb", "mobilenet.pb"):
        save(graph, folder / name)
    save(graph, folder / "saved_model", form="saved_model")
    with zipfile.ZipFile(ROOT / "tests" / "fixtures" / "keras_files.zip") as archive:
        (folder / "model.keras").write_bytes(archive.read("pictures_keras3.keras"))
    small = transform(graph, "mobile", inputs="x", outputs="softmax")
    save(small, folder / "small.pb")
    for name in ("model.tflite", "small.tflite"):
        export(small, folder / name, shapes={"x": (1, SIDE, SIDE, 3)})
    (folder / "training").mkdir()
    training = Graph([*(node for node in trainable(graph) if node.name != "kept"), *parse(DROPOUT)])
    save(training, folder / "training" / "graph.pbtxt")
    save(training, folder / "training" / "model.ckpt-1000.meta")
    prefix = folder / "training" / "model.ckpt-1000"
    names = {node.name for node in training if node.op == "VariableV2"}
    write_checkpoint(prefix, {node.name: node.attrs["value"] for node in graph if node.name in names})
    (folder / "training" / "checkpoint").write_text(f'model_checkpoint_path: "{prefix.name}"\n')


def write_recordings(folder: pathlib.Path, rng: np.random.Generator) -> None:
    """A net for spoken words, and tones in place of words."""
    save(speech_net(rng), folder / "speech.pb")
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    for index in range(14):
        word = WORDS[2 + index % 2]
        (folder / "words" / word).mkdir(parents=True, exist_ok=True)
        (folder / "words" / word / f"{index:02}.wav").write_bytes(recording(200 + 60 * index))
    (folder / "yes.wav").write_bytes(recording(440))
    (folder / "talk.wav").write_bytes(recording(440, seconds=4))
    (folder / "talk.txt").write_text("yes, 1000\nno, 3000\n")


def write_table(path: pathlib.Path) -> None:
    """Weight, span and length of birds of three kinds."""
    rng = np.random.default_rng(2)
    lines = ["grams,span_cm,length_cm,class"]
    for name, *means in (("crow", 500, 90, 45), ("kite", 800, 150, 60), ("wren", 10, 14, 10)):
        lines += [",".join([*(f"{value:.1f}" for value in means * rng.normal(1, 0.2, 3)), name]) for _ in range(60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def flower(rng: np.random.Generator, name: str) -> Image.Image:
    """A drawn flower: petals of its colour somewhere on a background of leaves, with noise."""
    ground = rng.integers(20, 90, (6, 6, 3)) + np.array([0, 50, 0])
    picture = Image.fromarray(ground.astype(np.uint8)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    middle, reach = rng.uniform(16, 32, 2), rng.uniform(9, 15)
    petals = {"daisy": 9, "roses": 5, "tulips": 3}[name]
    for angle in np.arange(petals) * 2 * np.pi / petals + rng.uniform(0, 6):
        x, y = middle + 0.6 * reach * np.array([np.cos(angle), np.sin(angle)])
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=COLOURS[name])
    x, y = middle
    draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(230, 180, 20))
    noisy = np.asarray(picture, np.float32) + rng.normal(0, 12, (SIDE, SIDE, 3))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def scaled(pictures: list[Image.Image]) -> np.ndarray:
    """float32 [N, 48, 48, 3] from -1 to 1."""
    return np.stack([np.asarray(picture, np.float32) for picture in pictures]) / 127.5 - 1


def large(picture: Image.Image) -> Image.Image:
    """The picture as a camera would give it: larger than the net takes it."""
    return picture.resize((PHOTO, PHOTO), Image.Resampling.BICUBIC)


def classifier(pictures: dict[str, list[Image.Image]]) -> Graph:
    """A net with a batch norm, drawn filters, and a last layer that is solved for."""
    rng = np.random.default_rng(1)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,48,48,3])
        conv = Conv2D(x, conv/weights, strides=[1,2,2,1], padding="SAME", T=float)
        norm = FusedBatchNormV3(conv, scale, offset, mean, variance, T=float, U=float, epsilon=0.001, is_training=false)
        relu = Relu6(norm, T=float)
        depthwise = DepthwiseConv2dNative(relu, depthwise/weights, strides=[1,2,2,1], padding="SAME", T=float)
        relu_1 = Relu6(depthwise, T=float)
        conv_1 = Conv2D(relu_1, conv_1/weights, strides=[1,1,1,1], padding="SAME", T=float)
        relu_2 = Relu6(conv_1, T=float)
        pool = Mean(relu_2, pool/axes, T=float, Tidx=int32)
        kept = Identity(pool, T=float)
    """)
    drawn = {
        "conv/weights": rng.normal(0, 0.3, (3, 3, 3, 16)),
        "scale": rng.uniform(0.5, 1.5, 16), "offset": rng.normal(0, 0.3, 16),
        "mean": rng.normal(0, 0.1, 16), "variance": rng.uniform(0.5, 1.5, 16),
        "depthwise/weights": rng.normal(0, 0.4, (3, 3, 16, 1)),
        "conv_1/weights": rng.normal(0, 0.1, (3, 3, 16, 64)),
    }  # fmt: skip
    constants = [const(name, values.astype(np.float32)) for name, values in drawn.items()]
    trunk = Graph([*nodes, *constants, const("pool/axes", np.array([1, 2], np.int32))])
    batch = scaled([picture for name in CLASSES for picture in pictures[name]])
    with Session(trunk, engine="reference") as session:
        (features,) = session.run(["kept"], {"x": batch})
    wanted = np.repeat(np.eye(len(CLASSES)), EACH, axis=0) * 12 - 4
    inputs = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    weights = np.linalg.solve(inputs.T @ inputs + 0.01 * np.eye(inputs.shape[1]), inputs.T @ wanted).astype(np.float32)
    head = parse("""
        kept = Placeholder(dtype=float, shape=[?,64])
        product = MatMul(kept, weights, T=float)
        logits = BiasAdd(product, biases, T=float)
        softmax = Softmax(logits, T=float)
    """)
    last = [node for node in head if node.name != "kept"]
    return Graph([*trunk, *last, const("weights", weights[:-1]), const("biases", weights[-1])])


def speech_net(rng: np.random.Generator) -> Graph:
    """A net that reads recordings itself, by a spectrogram and Mfcc, with a convolution of drawn weights."""
    nodes = parse("""
        wav_data = Placeholder(dtype=string, shape=[])
        wav = DecodeWav(wav_data, desired_channels=1, desired_samples=16000)
        spectrogram = AudioSpectrogram(wav, window_size=640, stride=640, magnitude_squared=true)
        mfcc = Mfcc(spectrogram, wav:1, dct_coefficient_count=10)
        picture = Reshape(mfcc, shape, T=float, Tshape=int32)
        conv = Conv2D(picture, w1, strides=[1,2,2,1], padding="SAME", T=float)
        bias = BiasAdd(conv, b1, T=float)
        relu = Relu(bias, T=float)
        conv_1 = Conv2D(relu, w2, strides=[1,1,1,1], padding="SAME", T=float)
        bias_1 = BiasAdd(conv_1, b1, T=float)
        relu_1 = Relu(bias_1, T=float)
        flat = Mean(relu_1, axes, T=float, Tidx=int32)
        logits = MatMul(flat, w3, T=float)
        labels_softmax = Softmax(logits, T=float)
    """)
    drawn = {"w1": (3, 3, 1, 8), "b1": (8,), "w2": (3, 3, 8, 8), "w3": (8, len(WORDS))}
    constants = [const(name, rng.normal(0, 0.15, size).astype(np.float32)) for name, size in drawn.items()]
    whole = [const("shape", np.array([-1, 25, 10, 1], np.int32)), const("axes", np.array([1, 2], np.int32))]
    return Graph([*nodes, *constants, *whole])


def recording(pitch: float, seconds: int = 1) -> bytes:
    """A WAV file of a tone that swells once a second."""
    time = np.arange(RATE * seconds) / RATE
    samples = np.sin(2 * np.pi * pitch * time) * np.sin(np.pi * time) ** 2 / 4
    return bytes(encode_wav(samples[:, None].astype(np.float32), np.array(RATE)).item())
