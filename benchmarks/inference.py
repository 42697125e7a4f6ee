"""Session latency beside LiteRT, ONNX Runtime, OpenVINO (all in float32, on the official converters' files) and
TensorFlow 2's session, in one run; time to the first result and peak memory beside LiteRT and TensorFlow.

    python benchmarks/inference.py MODELS --tensorflow PYTHON [--catalogue FOLDERS --official FOLDER] [--rounds 15]

MODELS is a folder with NAME.pb, NAME.tflite and NAME.onnx (tf2onnx makes it; may be missing) for each of the networks
in measure.NETWORKS; PYTHON is the interpreter of an environment that has TensorFlow 2, and tf2onnx for --catalogue.
LiteRT runs in this environment, ONNX Runtime and OpenVINO too where they are installed, else in PYTHON's. Our session
has a column for each of its engines. With --catalogue the image models of a folder of folders (see
peers/catalogue_worker.py) are measured as well; what the official converters make of each is kept in the --official
folder, and a model that one refuses is measured without its programs.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

from catalogue import WORKER as CATALOGUE_WORKER
from catalogue import chosen, mean
from measure import HERE, NETWORKS, EndedEarly, Whole, paired, table, timed, whole_process

WORKER = str(HERE / "peers" / "worker.py")
TFLITE_WORKER = str(HERE / "peers" / "tflite_worker.py")
ONNX_WORKER = str(HERE / "peers" / "onnx_worker.py")

PROCESSOR_HELP = "time of processors in place of the clock's, latency with one thread only: for a busy machine"
PEERS = {"litert": "LiteRT", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "tensorflow": "TensorFlow"}
OURS = {
    "ours": "ours",
    "ours:openvino": "ours on OpenVINO",
    "ours:onnxruntime": "ours on ONNX Runtime",
    "ours:auto": "ours, engine='auto'",
}

Programs = dict[str, dict[str, list[str]]]
"""How each program runs each model, the number of threads left open."""


def having(module: str, other: str) -> str:
    """An interpreter that has the module: this one, or else the ``other``."""
    return sys.executable if find_spec(module) is not None else other


def ours(worker: str, *place: str) -> dict[str, list[str]]:
    """Our session with each engine that is installed, and with the choice among them."""
    engines = [name for name in ("openvino", "onnxruntime") if find_spec(name) is not None]
    programs = {"ours": "pocketgraph", **{f"ours:{name}": f"pocketgraph:{name}" for name in [*engines, "auto"]}}
    return {who: [sys.executable, worker, program, *place] for who, program in programs.items()}


def on_onnx(path: pathlib.Path, place: str, tensorflow: str) -> dict[str, list[str]]:
    """The programs that take an .onnx file."""
    if not path.exists():
        return {}
    return {
        who: [having(who, tensorflow), ONNX_WORKER, who, str(path), "{threads}", place]
        for who in ("onnxruntime", "openvino")
    }


def speed_models(models: pathlib.Path, tensorflow: str) -> Programs:
    """The large networks."""
    found: Programs = {}
    for name, side in NETWORKS.items():
        rest = ("{threads}", str(side))
        found[name] = {
            **ours(WORKER, str(models / f"{name}.pb"), *rest),
            "litert": [sys.executable, WORKER, "litert", str(models / f"{name}.tflite"), *rest],
            **on_onnx(models / f"{name}.onnx", str(side), tensorflow),
            "tensorflow": [tensorflow, WORKER, "tensorflow", str(models / f"{name}.pb"), *rest],
        }
    return found


def catalogue_models(folders: Sequence[pathlib.Path], official: pathlib.Path, tensorflow: str) -> Programs:
    """Models of a catalogue; without the peers whose official converter refuses."""
    found: Programs = {}
    for folder in folders:
        tflite, onnx = (converted(folder, official, kind, tensorflow) for kind in ("tflite", "onnx"))
        found[folder.name] = {
            **ours(CATALOGUE_WORKER, str(folder), "{threads}"),
            **({"litert": [sys.executable, TFLITE_WORKER, str(folder), str(tflite), "{threads}"]} if tflite else {}),
            **(on_onnx(onnx, str(folder), tensorflow) if onnx else {}),
            "tensorflow": [tensorflow, CATALOGUE_WORKER, "tensorflow", str(folder), "{threads}"],
        }
    return found


def converted(folder: pathlib.Path, official: pathlib.Path, kind: str, tensorflow: str) -> pathlib.Path | None:
    """What the official converter makes of a model, kept from an earlier run; None where it refuses."""
    target = official / f"{folder.name}.{kind}"
    if target.exists():
        return target
    command = [tensorflow, str(HERE / "peers" / f"official_{kind}.py"), str(folder), str(target)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode == 0:
        return target
    print(f"The converter to {kind} refuses {folder.name}: {made.stderr.strip().splitlines()[-1][:200]}")
    return None


def latency(programs: Mapping[str, Mapping[str, Sequence[str]]], rounds: int, threads_of: Sequence[int]) -> None:
    """Every program in turn, with so many threads; of each the least of its rounds' medians."""
    rows = []
    ratios: dict[tuple[str, int], list[float]] = {}
    asked = [who for who in (*OURS, *PEERS) if any(who in commands for commands in programs.values())]
    peers = [who for who in asked if who in PEERS]
    for name, commands in programs.items():
        for threads in threads_of:
            filled = {who: [part.format(threads=threads) for part in parts] for who, parts in commands.items()}
            least = {who: min(each) / 1000 for who, each in timed_or_left_out(filled, rounds).items()}
            best = min(peers, key=lambda who: least.get(who, math.inf))
            row = [name, str(threads), *(f"{least[who]:.3f}" if who in least else "-" for who in asked)]
            for peer in peers:
                row.append(f"{least['ours'] / least[peer]:.3f}" if peer in least else "-")
                if peer in least:
                    ratios.setdefault((PEERS[peer], threads), []).append(least["ours"] / least[peer])
            ratios.setdefault(("the best peer", threads), []).append(least["ours"] / least[best])
            chosen = least["ours:auto"] / least[best]
            ratios.setdefault(("the best peer, with engine='auto'", threads), []).append(chosen)
            rows.append([*row, f"{PEERS[best]}, {chosen:.3f}"])
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    header = ["model", "threads", *(f"{ {**OURS, **PEERS}[who] } ms" for who in asked)]
    header += [*(f"ours/{PEERS[who]}" for who in peers), "best peer, engine='auto' to it"]
    table(f"Session latency, least of the medians of {rounds} rounds, by turns", header, rows)
    for (name, threads), each in sorted(ratios.items()):
        print(f"geometric mean, {threads} thread{'s' * (threads > 1)}, {len(each)} models: {mean(each):.3f} x {name}")


def timed_or_left_out(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """As measure.timed, without the peers that end early: some lack an op of the file."""
    while True:
        try:
            return timed(commands, rounds, fewest=3)
        except EndedEarly as error:
            if error.who in ("ours", "ours:auto"):
                raise
            print(f"{error.who} does not run this model", file=sys.stderr)
            commands = {who: command for who, command in commands.items() if who != error.who}


def first_result(programs: Mapping[str, Mapping[str, Sequence[str]]], rounds: int) -> None:
    """Whole processes by turns: ours with an empty cache and with that of an earlier process, LiteRT's on the official
    converter's file where there is one, and TensorFlow's."""
    rows = []
    for name, commands in programs.items():
        once = {who: [*(part.format(threads=2) for part in each), "once"] for who, each in commands.items()}
        peers = [who for who in ("litert", "tensorflow") if who in once]
        found: dict[str, list[Whole]] = {who: [] for who in ("cold", "warm", *peers)}
        with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory() as compiled:
            # An installed package has its bytecode beside it; one that is run from a work tree may not.
            settings = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
            whole_process(once["ours"], {**settings, "POCKETGRAPH_CACHE": kept})
            for who in peers:
                whole_process(once[who], settings if who == "litert" else None)
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as fresh:
                    found["cold"].append(whole_process(once["ours"], {**settings, "POCKETGRAPH_CACHE": fresh}))
                found["warm"].append(whole_process(once["ours"], {**settings, "POCKETGRAPH_CACHE": kept}))
                for who in peers:
                    found[who].append(whole_process(once[who], settings if who == "litert" else None))
        rows.append([name, *compared(found, taken, "{:.2f}")])
        rows[-1] += compared(found, lambda each: each.peak / 1e6, "{:.0f}")
    whos = ["cold", "warm", "LiteRT", "TensorFlow"]
    ratios = [f"{ours}/{peer}" for peer in whos[2:] for ours in whos[:2]]
    header = [
        "model",
        *(f"{who} s" for who in whos),
        *ratios,
        *(f"{who} MB" for who in whos),
        *(f"{r} MB" for r in ratios),
    ]
    table(f"First result in a new process, from the .pb, 2 threads, median of {rounds} rounds", header, rows)


def taken(process: Whole) -> float:
    """The time of a process in seconds: the clock's, or with PROCESSOR_TIME in the environment that of processors."""
    return process.busy if os.environ.get("PROCESSOR_TIME") else process.seconds


def compared(found: Mapping[str, Sequence[Whole]], measure: Callable[[Whole], float], form: str) -> list[str]:
    """The median of each program, then the ratios of ours to the peers', round by round."""
    values = {who: [measure(each) for each in group] for who, group in found.items()}
    peers = ("litert", "tensorflow")
    cells = [form.format(statistics.median(values[who])) if who in values else "-" for who in ("cold", "warm", *peers)]
    for peer in peers:
        cells += [f"{paired(values[ours], values[peer]):.3f}" if peer in values else "-" for ours in ("cold", "warm")]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", required=True, help="the python of an environment with TensorFlow 2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["latency", "first"])
    parser.add_argument("--catalogue", type=pathlib.Path, help="a folder of model folders")
    parser.add_argument("--official", type=pathlib.Path, help="where the official converter's files are kept")
    parser.add_argument("--kinds", default="image", help="which of the catalogue, see catalogue.py")
    parser.add_argument("--names", default="", help="only these models")
    parser.add_argument("--processor", action="store_true", help=PROCESSOR_HELP)
    options = parser.parse_args()
    if options.processor:
        os.environ["PROCESSOR_TIME"] = "1"
    names = {name for name in options.names.split(",") if name}
    programs = {
        name: commands
        for name, commands in speed_models(options.models, options.tensorflow).items()
        if not names or name in names
    }
    if options.catalogue is not None:
        official = options.official or pathlib.Path(tempfile.mkdtemp())
        official.mkdir(parents=True, exist_ok=True)
        found = chosen(options.catalogue, set(options.kinds.split(",")), names)
        folders = [folder for group in found.values() for folder in group]
        programs.update(catalogue_models(folders, official, options.tensorflow))
    if options.only != "first":
        latency(programs, options.rounds, (1,) if options.processor else (1, 2))
    if options.only != "latency":
        first_result(programs, min(5, options.rounds))


if __name__ == "__main__":
    main()
