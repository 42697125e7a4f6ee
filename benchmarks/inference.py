"""Session latency, time to the first result and peak memory, beside LiteRT with the official converter's file and
TensorFlow 2's session, in one run.

    python benchmarks/inference.py MODELS --tensorflow PYTHON [--catalogue FOLDERS --official FOLDER] [--rounds 15]

MODELS is a folder with NAME.pb and NAME.tflite for each of the networks in measure.NETWORKS; PYTHON is the interpreter
of an environment that has TensorFlow 2. LiteRT runs in this environment. With --catalogue the image models of a folder
of folders (see peers/catalogue_worker.py) are measured as well; what the official converter makes of each is kept in
the --official folder, and a model that it refuses is compared with TensorFlow only.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from catalogue import WORKER as CATALOGUE_WORKER
from catalogue import chosen, mean
from measure import HERE, NETWORKS, Whole, paired, table, timed, whole_process

WORKER = str(HERE / "peers" / "worker.py")
TFLITE_WORKER = str(HERE / "peers" / "tflite_worker.py")
CONVERTER = str(HERE / "peers" / "official_tflite.py")
HEADER = ["model", "threads", "ours ms", "LiteRT ms", "TensorFlow ms", "ours/LiteRT", "ours/TensorFlow"]


def speed_models(models: pathlib.Path, tensorflow: str) -> dict[str, dict[str, list[str]]]:
    """How each program runs each of the large networks, the number of threads left open."""
    return {
        name: {
            "ours": [sys.executable, WORKER, "pocketgraph", str(models / f"{name}.pb"), "{threads}", str(side)],
            "litert": [sys.executable, WORKER, "litert", str(models / f"{name}.tflite"), "{threads}", str(side)],
            "tensorflow": [tensorflow, WORKER, "tensorflow", str(models / f"{name}.pb"), "{threads}", str(side)],
        }
        for name, side in NETWORKS.items()
    }


def catalogue_models(
    folders: Sequence[pathlib.Path], official: pathlib.Path, tensorflow: str
) -> dict[str, dict[str, list[str]]]:
    """The same for models of a catalogue; without LiteRT where the official converter refuses."""
    found = {}
    for folder in folders:
        found[folder.name] = {"ours": [sys.executable, CATALOGUE_WORKER, "pocketgraph", str(folder), "{threads}"]}
        target = official / f"{folder.name}.tflite"
        if not target.exists():
            made = subprocess.run([tensorflow, CONVERTER, str(folder), str(target)], capture_output=True, text=True)
            if made.returncode != 0:
                print(f"The official converter refuses {folder.name}: {made.stderr.strip().splitlines()[-1][:200]}")
        if target.exists():
            found[folder.name]["litert"] = [sys.executable, TFLITE_WORKER, str(folder), str(target), "{threads}"]
        found[folder.name]["tensorflow"] = [tensorflow, CATALOGUE_WORKER, "tensorflow", str(folder), "{threads}"]
    return found


def latency(programs: Mapping[str, Mapping[str, Sequence[str]]], rounds: int) -> None:
    rows = []
    ratios: dict[tuple[str, int], list[float]] = {}
    for name, commands in programs.items():
        for threads in (1, 2):
            filled = {who: [part.format(threads=threads) for part in parts] for who, parts in commands.items()}
            try:
                times = timed(filled, rounds, fewest=3)
            except SystemExit:  # LiteRT starts, but its interpreter lacks an op of the official file
                times = timed({who: command for who, command in filled.items() if who != "litert"}, rounds, fewest=3)
            row = [name, str(threads)]
            row += [
                f"{statistics.median(times[who]) / 1000:.3f}" if who in times else "-"
                for who in ("ours", "litert", "tensorflow")
            ]
            for peer in ("litert", "tensorflow"):
                ratio = paired(times["ours"], times[peer]) if peer in times else None
                row.append("-" if ratio is None else f"{ratio:.3f}")
                if ratio is not None:
                    ratios.setdefault((peer, threads), []).append(ratio)
            rows.append(row)
            print("  ".join(row), file=sys.stderr, flush=True)
    table(f"Session latency, median of {rounds} interleaved rounds", HEADER, rows)
    for (peer, threads), each in sorted(ratios.items()):
        name = {"litert": "LiteRT", "tensorflow": "TensorFlow"}[peer]
        print(f"geometric mean, {threads} thread{'s' * (threads > 1)}, {len(each)} models: {mean(each):.3f} x {name}")


def first_result(programs: Mapping[str, Mapping[str, Sequence[str]]], rounds: int) -> None:
    rows = []
    for name, commands in programs.items():
        ours, theirs = ([*(part.format(threads=2) for part in commands[who]), "once"] for who in ("ours", "tensorflow"))
        cold: list[Whole] = []
        warm: list[Whole] = []
        peer: list[Whole] = []
        with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory() as compiled:
            # An installed package has its bytecode beside it; one that is run from a work tree may not.
            settings = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
            whole_process(ours, {**settings, "POCKETGRAPH_CACHE": kept})
            whole_process(theirs)
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as fresh:
                    cold.append(whole_process(ours, {**settings, "POCKETGRAPH_CACHE": fresh}))
                warm.append(whole_process(ours, {**settings, "POCKETGRAPH_CACHE": kept}))
                peer.append(whole_process(theirs))
        rows.append(
            [
                name,
                *(f"{statistics.median(w.seconds for w in group):.2f}" for group in (cold, warm, peer)),
                f"{paired([w.seconds for w in cold], [w.seconds for w in peer]):.3f}",
                f"{paired([w.seconds for w in warm], [w.seconds for w in peer]):.3f}",
                *(f"{max(w.peak for w in group) / 1e6:.0f}" for group in (cold, warm, peer)),
                f"{paired([w.peak for w in cold], [w.peak for w in peer]):.3f}",
                f"{paired([w.peak for w in warm], [w.peak for w in peer]):.3f}",
            ]
        )
    header = ["model", "cold s", "warm s", "TensorFlow s", "cold ratio", "warm ratio"]
    header += ["cold MB", "warm MB", "TensorFlow MB", "cold memory ratio", "warm memory ratio"]
    table(f"First result in a new process, from the .pb, 2 threads, median of {rounds} rounds", header, rows)


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
    options = parser.parse_args()
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
        latency(programs, options.rounds)
    if options.only != "latency":
        first_result(programs, min(5, options.rounds))


if __name__ == "__main__":
    main()
