"""Eight bits against float: times at 1 and 2 threads and file sizes, the official converter's int8 file beside ours.

    python benchmarks/quantized.py --models FOLDER [--only resnet50] [--samples 8]

FOLDER holds NAME.pb for each network and, where the official file is to be beside it, NAME_int8.tflite. "float" is the
program that a Session runs. All models of one network are loaded at once and timed in turn, so that a drifting machine
drifts for all. The samples are random: the
networks' weights are too, and times do not depend on them.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import numpy as np

from measure import NETWORKS
from pocketgraph.formats import load
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting.optimize import optimize_for_latency
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.program_pass import copied
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import with_quantized_weights

ROUNDS, SLICE = 60, 0.03  # of many short slices some are undisturbed
TARGET_FASTER, TARGET_SIZE, TARGET_CALIBRATION = 2.8, 0.27, 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rounding", default="corrected", help="as of `quantize`; times do not depend on it")
    arguments = parser.parse_args()
    for name, side in NETWORKS.items():
        if arguments.only in (None, name):
            network(name, side, arguments)


def network(name: str, side: int, arguments: argparse.Namespace) -> None:
    """Prints the table of one network."""
    program = canonicalize(lowered_graph(load(arguments.models / f"{name}.pb"))[0])
    rng = np.random.default_rng(0)
    held = [[rng.uniform(-1, 1, (1, side, side, 3)).astype(np.float32)] for _ in range(arguments.samples)]
    start = time.perf_counter()
    options = QuantizationOptions(float_share=0, rounding=arguments.rounding, threads=2)
    outcome = quantize_program(program, lambda: iter(held), len(held), options)
    seconds = time.perf_counter() - start
    print(f"\n{name}: quantized with {len(held)} samples in {seconds:.1f} s; {calibration(program, held)}")
    print(f"wanted of int8: {TARGET_SIZE} of the float file at most, at least {TARGET_FASTER} x faster")
    models = {
        "float": model_bytes(hastened(program)),
        "int8": model_bytes(outcome.converted.program),
        "int8, dynamic": model_bytes(with_quantized_weights(program, dynamic=True)),
    }
    official = arguments.models / f"{name}_int8.tflite"
    if official.exists():
        models["official int8"] = official.read_bytes()
    print(f"{'':16}{'bytes':>14}{'of float':>10}" + "".join(f"{f'ms, {n} thread':>16}{'faster':>8}" for n in (1, 2)))
    times = {threads: timed(models, threads, held[0]) for threads in (1, 2)}
    for label, data in models.items():
        row = f"{label:16}{len(data):14,}{len(data) / len(models['float']):10.3f}"
        for threads in (1, 2):
            ratio = times[threads]["float"] / times[threads][label]
            row += f"{times[threads][label] * 1e3:16.2f}{ratio:7.2f}x"
        print(row)


def hastened(program: Program) -> Program:
    """The float program as a Session runs it."""
    made = copied(program)
    optimize_for_latency(made)
    return made


def timed(models: dict[str, bytes], threads: int, sample: list[Any]) -> dict[str, float]:
    """The best of the median times of each model, in seconds."""
    runners = {label: PlainRunner(data, threads) for label, data in models.items()}
    feeds = dict.fromkeys(models, sample)
    if "official int8" in runners:
        from ai_edge_litert.interpreter import Interpreter

        detail = Interpreter(model_content=models["official int8"]).get_input_details()[0]
        scale, zero = detail["quantization"]
        if scale:
            codes = np.clip(np.rint(sample[0] / scale) + zero, -128, 127).astype(detail["dtype"])
            feeds["official int8"] = [codes]
    found: dict[str, list[float]] = {label: [] for label in models}
    for _ in range(ROUNDS):
        for label, runner in runners.items():
            found[label].append(runner.seconds(feeds[label], SLICE, 50))
    return {label: min(values) for label, values in found.items()}


def calibration(program: Any, held: list[list[Any]]) -> str:
    """How calibration's throughput stands to plain inference's, both from the program to the last sample."""
    many = held * 8
    plain, observing = [], []
    for _ in range(6):
        start = time.perf_counter()
        running = ProgramRunner(program)
        for sample in many:
            running(sample)
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        observe(program, lambda: iter(many), len(many), lambda stage, done, total: None, 1)
        observing.append(time.perf_counter() - start)
    return f"calibrating runs at {min(plain) / min(observing):.2f} x plain inference (wanted: {TARGET_CALIBRATION})"


if __name__ == "__main__":
    main()
