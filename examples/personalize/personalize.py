"""Ten photos of a new class, learned on the device: a retrained model before and after, its old classes kept.

    python examples/personalize/personalize.py --photos flower_photos --graph mobilenet_frozen.pb --new tulips

PHOTOS has a folder of photos for each class. At the desk, `retrain` learns all classes but the new one, and `write`
exports the model with a head that has room for one more. What a phone does then is `on_the_device`: LiteRT's
interpreter and the file, nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

SHARED = Path(os.environ.get("POCKETGRAPH_SHARED", "shared")) / "models"
BATCH = 10  # photos of the new class
LEARNED, HELD_OUT = 60, 20  # photos of each class to retrain with, and to judge by
STEPS = 60
SUFFIXES = (".jpg", ".jpeg", ".png")


def main() -> int:
    parser = argparse.ArgumentParser(description="Learns a new class from ten photos in LiteRT's interpreter.")
    parser.add_argument("--photos", type=Path, default=SHARED / "data_flower_photos", help="a folder for each class")
    parser.add_argument(
        "--graph", type=Path, default=SHARED / "mobilenet_v1_025_128" / "frozen_graph.pb",
        help="a frozen MobileNet v1 that takes pictures of 128 x 128 pixels",
    )  # fmt: skip
    parser.add_argument("--new", default="tulips", help="the class that the retrained model has never seen")
    parser.add_argument("--out", type=Path, default=Path("personal.tflite"), help="the file for the device")
    arguments = parser.parse_args()
    for path, what in ((arguments.photos, "--photos"), (arguments.graph, "--graph")):
        if not path.exists():
            print(f"skipped: there is no '{path}'; name one with {what}")
            return 0
    photos = {folder.name: read(folder) for folder in sorted(arguments.photos.iterdir()) if folder.is_dir()}
    if arguments.new not in photos:
        print(f"there is no folder '{arguments.new}' in {arguments.photos}, but {', '.join(photos)}", file=sys.stderr)
        return 1
    needed = {name: HELD_OUT + (BATCH if name == arguments.new else 1) for name in photos}
    for name, images in photos.items():
        if len(images) < needed[name]:
            print(
                f"'{name}' has {len(images)} photos; {needed[name]} or more are needed: {HELD_OUT} judge",
                file=sys.stderr,
            )
            return 1
    new = photos.pop(arguments.new)
    if len(photos) < 2:
        print(f"two classes or more are needed beside '{arguments.new}'", file=sys.stderr)
        return 1
    weights = retrain(arguments.graph, photos)
    made = write(arguments.graph, weights, arguments.out)
    print(f"{arguments.out}: {made.bytes:,} bytes, {', '.join(check.entry for check in made.checks)}")
    rows = on_the_device(arguments.out, photos, new)
    print(f"{'':8}old classes  '{arguments.new}'")
    for name, (old, learned) in rows.items():
        print(f"{name:8}{old:11.1%}  {learned:.1%}")
    return 0


def read(folder: Path) -> np.ndarray:
    """The photos of a folder as the model takes them: float32 [N, 128, 128, 3] from -1 to 1."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)[: LEARNED + HELD_OUT]
    sized = [Image.open(file).convert("RGB").resize((128, 128), Image.Resampling.BILINEAR) for file in files]
    values = [np.asarray(image, np.float32) / 127.5 - 1 for image in sized]
    return np.stack(values) if values else np.zeros((0, 128, 128, 3), np.float32)


# At the desk


def retrain(graph: Path, photos: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Learns these classes by the features that the network has of them.

    Returns:
        ``kernel`` [features, classes] and ``bias`` of the head, and the mean features of each class, ``means``.
    """
    import pocketgraph
    from pocketgraph.graph import const
    from pocketgraph.graph.text_format import parse

    with pocketgraph.Session(graph) as session:
        name = bottleneck(session.graph)
        kept = [
            np.stack([session.run(name, {"input": image[None]})[0].reshape(-1) for image in images[:-HELD_OUT]])
            for images in photos.values()
        ]
    size, classes = kept[0].shape[1], len(kept)
    head = parse("""
        features = Placeholder(dtype=float, shape=[?,?])
        product = MatMul(features, kernel, T=float, transpose_a=false, transpose_b=false)
        logits = Add(product, bias, T=float)
    """)
    weights = const("kernel", np.zeros((size, classes), np.float32)), const("bias", np.zeros(classes, np.float32))
    head = pocketgraph.add_loss(pocketgraph.trainable(head.replace([*weights, *head])), "logits")
    head = pocketgraph.add_regularization(head, head.outputs[0], l2=1e-3)
    head = pocketgraph.minimize(head, head.outputs[0], "adam", learning_rate=0.05)
    labels = np.repeat(np.arange(classes), [len(rows) for rows in kept])
    with pocketgraph.Session(head) as session:
        session.run("init")
        losses = pocketgraph.train(session, [{"features": np.concatenate(kept), "labels": labels}] * 300)
        learned = session.variables()
    print(f"retrained on {', '.join(photos)}: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    means = np.stack([rows.mean(0) for rows in kept])
    return {"kernel": learned["kernel"], "bias": learned["bias"], "means": means}


def bottleneck(graph) -> str:
    """The pooled features in front of the classifier."""
    found = next((node.name for node in graph if node.op == "AvgPool"), None)
    if found is None or "input" not in graph:
        sys.exit("the graph is no MobileNet v1: it has no 'input', or no AvgPool in front of a classifier")
    return found


def write(graph: Path, weights: dict[str, np.ndarray], path: Path):
    """Writes the network with a head for one class more.

    Steps of training see the photos' features and, so that the old classes are kept, the mean features of these, which
    are part of the file; besides, weights are held towards where they began.
    """
    import pocketgraph
    from pocketgraph.graph import Node, Shape, const
    from pocketgraph.graph.dtype import FLOAT, INT64
    from pocketgraph.graph.text_format import parse

    net = pocketgraph.load(graph)
    features = bottleneck(net)
    # The network without its own classifier, for any number of photos; batch norms melt into the convolutions.
    rules = "strip_unused_nodes fold_constants fold_batch_norms fold_old_batch_norms"
    net = pocketgraph.transform(net, rules, inputs=["input"], outputs=[features])
    photos = Node("input", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([None, 128, 128, 3])})
    net = net.map_nodes(lambda node: photos if node.name == "input" else node)
    size, classes = weights["kernel"].shape
    net = net.replace([
        *net,
        const("head/kernel", np.pad(weights["kernel"], ((0, 0), (0, 1)))),
        const("head/bias", np.pad(weights["bias"], (0, 1))),
        const("head/means", weights["means"]),
        const("head/mean_labels", np.arange(classes), INT64),
        *parse(f"""
            features/shape = Const(int32 [-1, {size}])
            features = Reshape({features}, features/shape, T=float, Tshape=int32)
            head/product = MatMul(features, head/kernel, T=float, transpose_a=false, transpose_b=false)
            logits = Add(head/product, head/bias, T=float)
            scores = Softmax(logits, T=float)
            means/product = MatMul(head/means, head/kernel, T=float, transpose_a=false, transpose_b=false)
            means/logits = Add(means/product, head/bias, T=float)
            means/loss = SparseSoftmaxCrossEntropyWithLogits(means/logits, head/mean_labels, T=float, Tlabels=int64)
            means/axes = Const(int32 [0])
            means/mean = Mean(means/loss, means/axes, T=float, Tidx=int32)
        """),
    ])  # fmt: skip
    net = pocketgraph.trainable(net, ["head/kernel", "head/bias"])
    net = pocketgraph.add_loss(net, "logits")
    net = net.replace([*net, *parse(f"both = Add({net.outputs[0]}, means/mean, T=float)")])
    net = pocketgraph.add_regularization(net, "both", l2=0.01, towards="start")
    net = pocketgraph.minimize(net, net.outputs[0], "adam", learning_rate=0.01)
    net = pocketgraph.add_signatures(net, "scores", features="features")
    path.unlink(missing_ok=True)
    return pocketgraph.export(net, path, shapes={"train/features": (BATCH, size), "train/labels": (BATCH,)})


# On the device


def on_the_device(path: Path, photos: dict[str, np.ndarray], new: np.ndarray) -> dict[str, tuple[float, float]]:
    """Learns the new class in LiteRT's interpreter.

    Returns:
        The share of held-out photos of the old classes, and of the new one, that are named rightly: ``before``,
        ``after``, and in another interpreter that was given the saved weights, ``restored``.
    """
    from ai_edge_litert.interpreter import Interpreter

    def judged(interpreter) -> tuple[float, float]:
        infer = interpreter.get_signature_runner("infer")
        right = [
            np.mean([infer(input=image[None])["scores"].argmax() == label for image in images[-HELD_OUT:]])
            for label, images in enumerate([*photos.values(), new])
        ]
        return float(np.mean(right[:-1])), float(right[-1])

    interpreter = Interpreter(str(path))
    rows = {"before": judged(interpreter)}
    load, train = (interpreter.get_signature_runner(name) for name in ("load", "train"))
    features = np.concatenate([load(input=image[None])["features"] for image in new[:BATCH]])
    labels = np.full(BATCH, len(photos), np.int64)
    losses = [float(train(features=features, labels=labels)["loss"]) for _ in range(STEPS)]
    print(f"learned from {BATCH} photos: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    rows["after"] = judged(interpreter)
    weights = interpreter.get_signature_runner("save")()
    again = Interpreter(str(path))
    again.get_signature_runner("restore")(**weights)
    rows["restored"] = judged(again)
    return rows


if __name__ == "__main__":
    sys.exit(main())
