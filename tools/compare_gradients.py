"""Holds our gradients to those of TensorFlow 1.15, afresh.

    python tools/compare_gradients.py --oracle .oracle/bin/python               the small graphs of the tests
    python tools/compare_gradients.py --oracle PYTHON --models                     the shared models
    python tools/compare_gradients.py --oracle PYTHON --models cifar_frozen        some, by a part of their names
    python tools/compare_gradients.py --oracle PYTHON --op-graphs                  the shared graphs of single ops

PYTHON has TensorFlow 1.15 (tools/oracle.py makes such an environment). Each graph's first floating output is
differentiated by its floating inputs and its constants, with random numbers as the output's gradient. Our graph runs
on the reference engine, on the default one, and in TensorFlow; all three should equal tf.gradients within 1e-5 of the
peak. Where another order of summation moves a unit to the other side of its kink (a Relu or Relu6 with an input of
just about 0 or 6), engines differ by what that unit passes on: such units are counted, and the graph is "at a kink"
when our nodes give tf.gradients' numbers in TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-5
"""Of the largest magnitude of the gradient."""
NARROW = 1e-2
"""The same for numbers of 16 bits."""
MOST_CONSTANTS = 40
"""By which a model is differentiated: enough to pass every kind of layer."""


def main():
    parser = argparse.ArgumentParser(description="Compares our gradients with TensorFlow's.")
    parser.add_argument("--oracle", help="a Python that has TensorFlow 1.15")
    parser.add_argument("--models", nargs="*", help="the shared models, or those with this in their names")
    parser.add_argument("--op-graphs", nargs="*", help="the shared graphs of single ops, or some of them")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return answer(pathlib.Path(arguments.inside))
    if not arguments.oracle:
        parser.error("--oracle PYTHON is missing: a Python that has TensorFlow 1.15")
    sys.path[:0] = [str(ROOT / "tests" / "fixtures"), str(ROOT / "tests")]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.models is not None:
            jobs = model_jobs(arguments.models)
        elif arguments.op_graphs is not None:
            jobs = op_graph_jobs(arguments.op_graphs)
        else:
            jobs = case_jobs()
        return compare(arguments.oracle, pathlib.Path(folder), jobs)


def case_jobs():
    """(name, graph, feeds, y) of the small graphs of the tests."""
    from gradient_cases import CASES

    for case in CASES:
        if case.numeric:
            continue
        for static in (True, False):
            yield case.name + ("" if static else " of unknown sizes"), case.graph(static=static), case.feeds(), "y"


def model_jobs(parts):
    """(name, graph, feeds, y) of the shared models that have TensorFlow's results."""
    from pocketgraph import load
    from support import golden, model_dir, model_info, shared

    for folder in sorted((shared() / "models").iterdir()):
        if parts and not any(part in folder.name for part in parts):
            continue
        if not (folder / "golden.npz").exists() or not (folder / "model.json").exists():
            continue
        info = model_info(folder.name)
        if info.get("format") != "GraphDef" or info.get("kind") != "GraphDef":
            continue
        feeds, wanted = golden(model_dir(folder.name))
        for y, value in wanted.items():
            if value.dtype == np.float32:
                yield folder.name, load(folder / info["file"]), feeds, y
                break


def op_graph_jobs(parts):
    """(name, graph, feeds, y) of the shared graphs of single ops."""
    from pocketgraph import load
    from support import shared

    base = shared() / "models" / "op_graphs"
    index = json.loads((base / "index.json").read_text())
    entries = index.items() if isinstance(index, dict) else ((entry["name"], entry) for entry in index)
    for name, entry in entries:
        if parts and not any(part in name for part in parts):
            continue
        found = base / entry.get("dir", name)
        if not (found / "golden.npz").exists() or entry.get("uses_random"):
            continue
        with np.load(found / "golden.npz", allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        feeds = {}
        for ref in entry["inputs"]:
            for key in ("in_" + ref.replace(":", "_").replace("/", "_"), "in_" + ref.replace(":", "_"), "in_" + ref):
                if key in arrays:
                    feeds[ref] = arrays[key]
        for ref in entry["outputs"]:
            yield name, load(found / "frozen_model.pb"), feeds, ref
            break


def compare(oracle, folder, jobs):
    """Prints what is not equal, and how many are; 1 when any is not."""
    import pocketgraph
    from pocketgraph.differentiation.backpropagation import carries
    from pocketgraph.errors import PocketgraphError
    from pocketgraph.graph import const
    from pocketgraph.kernels.shapes import infer
    from pocketgraph.kernels.shapes.infer import postorder

    asked, counts = [], Counter()
    for name, graph, feeds, y in jobs:
        number = len(asked)
        feeds = {ref if ":" in ref else ref + ":0": value for ref, value in feeds.items()}
        job = {"name": name, "y": y, "xs": [], "number": number, "error": ""}
        try:
            known = infer(graph)
            if not carries(known.dtype(y)):
                counts["of no floating numbers"] += 1
                continue
            session = pocketgraph.Session(graph, engine="reference")
            value = session.run([y], feeds)[0]
            rng = np.random.default_rng(number)
            gy = const("oracle_gy", rng.uniform(-1, 1, np.shape(value)).astype(value.dtype))
            graph = graph.replace([*graph, gy])
            xs = [ref for ref, array in feeds.items() if array.dtype.kind == "f"]
            constants = [
                node.name + ":0" for node in postorder(graph, [y])
                if node.op == "Const" and carries(node.tensor.dtype) and node.tensor.size
            ]  # fmt: skip
            job["xs"] = xs + constants[:MOST_CONSTANTS]
            if not job["xs"]:
                counts["with nothing to differentiate by"] += 1
                continue
            pocketgraph.save(graph, folder / f"{number}.pb")
            np.savez(folder / f"{number}.npz", **{f"f{i}": array for i, array in enumerate(feeds.values())})
            job["feeds"] = list(feeds)
            ours = pocketgraph.gradients(graph, y, job["xs"], ["oracle_gy"], unconnected="zero")
            job["ours"] = list(ours.outputs)
            order = postorder(graph, [y])
            job["kinks"] = [node.name + ":0" for node in order if node.op in ("Relu", "Relu6")]
            job["size"] = min(known.dtype(x).size for x in [y, *job["xs"]])
            pocketgraph.save(ours, folder / f"{number}_ours.pb")
            for engine in ("reference", "auto"):
                with pocketgraph.Session(ours, **({"engine": engine} if engine != "auto" else {})) as session:
                    results = session.run([*ours.outputs, *job["kinks"]], feeds)
                save(folder / f"{number}_{engine}.npz", results, len(ours.outputs))
        except (PocketgraphError, ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            job["error"] = f"{type(error).__name__}: {error}"
            if not isinstance(error, PocketgraphError):
                import traceback

                traceback.print_exc()
        asked.append(job)
    (folder / "jobs.json").write_text(json.dumps(asked))
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run([oracle, __file__, "--inside", str(folder)], check=True, env=environment)
    answers = json.loads((folder / "answers.json").read_text())
    for job, said in zip(asked, answers):  # noqa: B905 - the file is read by Python 3.7 too
        verdict = judged(folder, job, said)
        counts[verdict.partition(":")[0]] += 1
        if verdict not in ("equal", "not differentiable in either"):
            print(f"{job['name']}: {verdict}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts["differs"] or counts["only TensorFlow has it"] else 0


def judged(folder, job, said):
    """One graph's verdict."""
    if job["error"] and said["error"]:
        return "not differentiable in either"
    if job["error"]:
        return f"only TensorFlow has it: {job['error']}"
    if said["error"]:
        return f"only we have it: {said['error']}"
    if said["ours"]:
        return f"differs: TensorFlow does not run our graph: {said['ours']}"
    number = job["number"]
    tolerance = {2: NARROW}.get(job["size"], TOLERANCE)
    loads = {kind: np.load(folder / f"{number}_{kind}.npz") for kind in ("tf", "check", "reference", "auto")}
    for index, x in enumerate(job["xs"]):
        want = loads["tf"][f"arr_{index}"]
        peak = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)) or 1.0
        for kind in ("check", "reference", "auto"):
            got = loads[kind][f"arr_{index}"]
            if got.shape != want.shape and not (want.any() or got.any()):
                continue  # of what has no influence in training TensorFlow's batch norms give a scalar 0
            if got.shape != want.shape:
                return f"differs: {kind} by {x}: shape {got.shape} and not {want.shape}"
            fits = np.isclose(got, want, rtol=0, atol=tolerance * peak, equal_nan=True)
            if not fits.all():
                worst = float(np.nanmax(np.abs(got - want))) / peak
                moved = 0 if kind == "check" else other_side(loads["tf"], loads[kind], len(job["xs"]))
                if moved:
                    return f"at a kink: {kind}: {moved} units, by {x} {worst:.2e} of the peak {peak:.3g}"
                return f"differs: {kind} by {x}: {worst:.2e} of the peak {peak:.3g}"
    return "equal"


def other_side(one, other, count):
    """How many units with a kink are on another side of it."""
    names = [f"arr_{index}" for index in range(count, len(one.files))]
    return sum(int(np.unpackbits(one[name] ^ other[name]).sum()) for name in names if name in other.files)


def answer(folder):
    """What TensorFlow says; runs in its Python."""
    import logging

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import warnings

    warnings.filterwarnings("ignore")
    import tensorflow as tf

    tf.get_logger().setLevel(logging.ERROR)
    v1 = tf.compat.v1
    answers = []
    for job in json.loads((folder / "jobs.json").read_text()):
        said = {"error": "", "ours": ""}
        answers.append(said)
        path = folder / f"{job['number']}.pb"
        if not path.exists():
            said["error"] = "not asked"
            continue
        data = np.load(str(folder / f"{job['number']}.npz"))
        feeds = {ref: data[f"f{index}"] for index, ref in enumerate(job["feeds"])}
        try:
            with v1.Graph().as_default() as graph, v1.Session() as session:
                imported(v1, path)
                tensor = graph.get_tensor_by_name
                named = [tensor(x) for x in job["xs"]]
                y = job["y"] if ":" in job["y"] else job["y"] + ":0"
                found = v1.gradients(tensor(y), named, [tensor("oracle_gy:0")])
                dense = [
                    tf.zeros_like(x) if g is None else tf.convert_to_tensor(g)
                    for x, g in zip(named, found)  # noqa: B905
                ]
                results = session.run(dense + job.get("kinks", []), feeds)
                save(folder / f"{job['number']}_tf.npz", results, len(dense))
        except Exception as error:
            said["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        if job["error"]:
            continue
        try:
            with v1.Graph().as_default() as graph, v1.Session() as session:
                imported(v1, folder / f"{job['number']}_ours.pb")
                refs = [ref if ":" in ref else ref + ":0" for ref in job["ours"]]
                save(folder / f"{job['number']}_check.npz", session.run(refs, feeds), len(refs))
        except Exception as error:
            said["ours"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    (folder / "answers.json").write_text(json.dumps(answers))
    return 0


def plain(array):
    """The array; of a type that files do not hold, as float32."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def save(path, results, count):
    """Saves gradients, and behind them which units with a kink are between 0 and 6, in bits."""
    sides = [np.packbits((array > 0) & (array < 6)) for array in results[count:]]
    np.savez(str(path), *[plain(array) for array in results[:count]], *sides)


def imported(v1, path):
    """Imports a GraphDef file into the present graph."""
    definition = v1.GraphDef()
    definition.ParseFromString(path.read_bytes())
    v1.import_graph_def(definition, name="")


if __name__ == "__main__":
    sys.exit(main())
