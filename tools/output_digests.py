"""Digests of what pocketgraph writes for real models, before and after a change that must not alter a byte.

    python tools/output_digests.py MODELS --save before.json
    python tools/output_digests.py MODELS --against before.json

MODELS holds a folder a model with ``model.json`` and ``golden.npz``. Each model is transformed, quantized (static with
its golden inputs as samples, dynamic, weights) and exported (C, ONNX) by the command line, and run in a session with a
cache of its own; digested are the files and the compiled parts. Some SavedModels and training directories are frozen.
With ``--against`` it exits 1 and lists what differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

MODELS = (
    "mobilenet_v1_025_128", "poets_retrained_128", "tfl_quantized_graph", "music_score_classifier",
    "customvision_recipe", "mtcnn_blaueck", "pose_mobilenet_v2_small", "stylize_quantized", "espcn_x3",
    "fsrcnn_small_x4", "speech_conv_actions_pardeep", "kws_basic_lstm_s", "kws_crnn_s", "kws_ds_cnn_s",
    "har_developershutt", "mbti_model", "lenet_kisan", "tf2onnx_lstm", "cifar_frozen", "unity_wall",
)  # fmt: skip
FROZEN = (
    "sm_half_plus_two_cpu/saved_model_half_plus_two_cpu/00000123", "sm_mnist_conv/mnist_conv_model",
    "sm_rust_regression/regression_savedmodel", "sm_counter/saved_model_counter/00000123",
    "sm_half_plus_two_tf2/saved_model_half_plus_two_tf2_cpu/00000123", "sm_hub_v1_mini/saved_model_v2_mini",
    "ckpt_v2_siamese", "ckpt_v2_fsrcnn_x2", "ckpt_v2_mtcnn_pnet", "ckpt_v2_haensel", "ckpt_v2_enet_chain",
)  # fmt: skip
TRANSFORMS = ("strip_unused_nodes fold_constants fold_batch_norms", "mobile", "smallest", "quantize_weights")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--only", help="some of the models, by commas")
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path)
    options = parser.parse_args()
    found: dict[str, str] = {f"freeze {name}": frozen(options.models / name) for name in FROZEN}
    for name in options.only.split(",") if options.only else MODELS:
        found.update({f"{name} {what}": digest for what, digest in digests(options.models / name).items()})
        print(f"{name}: {sum(key.startswith(name + ' ') for key in found)} digests", file=sys.stderr, flush=True)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1, sort_keys=True))
    if options.against:
        before = json.loads(options.against.read_text())
        differing = [key for key in found if before.get(key) != found[key]]
        print(f"{len(found)} digests, {len(differing)} differ")
        for key in differing:
            print(f"  {key}: {before.get(key)} -> {found[key]}")
        return bool(differing)
    return 0


FREEZE = "import pocketgraph, sys; pocketgraph.save(pocketgraph.freeze(sys.argv[1]), sys.argv[2])"


def frozen(path: pathlib.Path) -> str:
    """The digest of what ``pocketgraph.freeze`` makes of a model."""
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary) / "frozen.pb"
        done = subprocess.run([sys.executable, "-c", FREEZE, str(path), str(out)], capture_output=True, text=True)
        if not out.exists():
            return f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"
        return hashlib.sha256(out.read_bytes()).hexdigest()[:16]


def digests(folder: pathlib.Path) -> dict[str, str]:
    """What came out for one model, by what was done; an error's first line counts as output."""
    about = json.loads((folder / "model.json").read_text())
    model = folder / about["file"]
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        inputs, outputs = about["inputs"], about["outputs"]
        golden = np.load(folder / "golden.npz")
        feeds = {name: golden["in_" + name.replace(":", "_")] for name in inputs}
        strings = [name for name, about in inputs.items() if about["dtype"] == "string"]
        samples = work / "samples.npz"
        np.savez(samples, **feeds)
        names = f"--inputs={','.join(inputs)}", f"--outputs={','.join(outputs)}"
        for index, chain in enumerate(TRANSFORMS):
            out = work / f"transformed_{index}.pb"
            found[f"transform {chain}"] = command(
                out, "transform_graph", f"--in_graph={model}", f"--out_graph={out}", *names, f"--transforms={chain}"
            )
        for mode in ("static", "dynamic", "weights"):
            for suffix in (".tflite", ".pb"):
                out = work / f"{mode}{suffix}"
                given = [f"--calibrate={samples}"] if mode == "static" else []
                found[f"quantize {mode} {suffix}"] = command(
                    out, "quantize", str(model), *given, f"--mode={mode}", f"--output={out}", *names
                )
        for target, name in (("c", "library"), ("onnx", "exported.onnx")):
            out = work / name
            found[f"export {target}"] = command(
                out, "export", str(model), f"--output={out}", f"--target={target}", *names[1:]
            )
        found["compiled parts"] = compiled(model, strings, outputs, work)
    return found


def command(out: pathlib.Path, *arguments: str) -> str:
    """The digest of the file, or folder, that a command wrote, or the first words of its refusal."""
    environment = {**os.environ, "POCKETGRAPH_CACHE": str(out.parent / "cache"), "COLUMNS": "400"}
    done = subprocess.run(
        [sys.executable, "-c", "from pocketgraph.cli.main import main; main()", *arguments],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    if not out.exists():
        message = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return f"exit {done.returncode}: {message[0].replace(str(out.parent), '')[:200]}"
    digest = hashlib.sha256()
    for path in sorted(path for path in out.rglob("*") if path.is_file()) if out.is_dir() else [out]:
        digest.update(path.name.encode() if out.is_dir() else b"")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


COMPILED = """
import sys, numpy as np, pocketgraph
strings = sys.argv[4].split(",")
feeds = dict(np.load(sys.argv[2]))
feeds = {name: value.tobytes() if name in strings else value for name, value in feeds.items()}
with pocketgraph.Session(sys.argv[1], threads=1) as session:
    for _ in range(2):
        session.run(sys.argv[3].split(","), feeds)
"""


def compiled(model: pathlib.Path, strings: list[str], outputs: list[str], work: pathlib.Path) -> str:
    """A digest of all parts that a session compiled for two calls."""
    cache = work / "parts"
    done = subprocess.run(
        [sys.executable, "-c", COMPILED, str(model), str(work / "samples.npz"), ",".join(outputs),
         ",".join(strings)],
        capture_output=True, text=True, env={**os.environ, "POCKETGRAPH_CACHE": str(cache)},
    )  # fmt: skip
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"
    # Plans are kept in files of the same suffix; only LiteRT models begin with a root offset and "TFL3".
    parts = [path.read_bytes() for path in cache.rglob("*.tflite")]
    parts = sorted(hashlib.sha256(part).hexdigest()[:16] for part in parts if part[4:8] == b"TFL3")
    return f"{len(parts)}: " + hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
