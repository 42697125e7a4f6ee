"""What eight-bit weights cost where no samples are given, and with samples: nearest codes beside fitted ones.

    python benchmarks/weight_only.py FOLDER [--only photos pictures digits mnist keywords] [--models NAME …]
        [--judged 300]

FOLDER and the kinds of models are those of quantized_accuracy.py. Each model gets weights as the nearest codes
(``rounding="nearest"``), fitted to what its batch norms tell of the training data, and fitted to 100 samples; all are
judged on samples that none of them has seen.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator

import numpy as np

from measure import table
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import quantize_weights
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantized_accuracy import CALIBRATED, KINDS, Case

HEADER = ("model", "mode", "weights", "agrees", "KL", "SNR dB", "bytes")
WAYS = (("nearest", False), ("batch norms", False), ("samples", True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--judged", type=int, default=300)
    arguments = parser.parse_args()
    for kind in arguments.only:
        rows = []
        for case in KINDS[kind](arguments.folder):
            if not arguments.models or case.name in arguments.models:
                rows += list(judged(case, arguments.judged))
                print(*rows[-2 * len(WAYS) :], sep="\n", flush=True)
        if rows:
            table(f"{kind}: weights in eight bits beside the float model", HEADER, rows)


def judged(case: Case, most: int) -> Iterator[tuple[str, ...]]:
    """A row for each mode and way."""
    output = [case.output] if case.output else None
    source = case.source or lowered_graph(case.graph, output, None, case.values)[0].inputs[0].name
    lowered, graph = lowered_graph(case.graph, output, {source: case.samples.shape[1:]}, case.values)
    program = canonicalize(lowered)
    order = np.random.default_rng(0).permutation(len(case.samples)) if case.is_split else np.arange(len(case.samples))
    held: list[Sample] = [[np.ascontiguousarray(case.samples[at])] for at in order[:CALIBRATED]]
    rest: list[Sample] = [[np.ascontiguousarray(case.samples[at])] for at in order[CALIBRATED : CALIBRATED + most]]
    for dynamic in (False, True):
        for name, has_samples in WAYS:
            outcome = quantize_weights(
                program, lambda held=held: iter(held), len(held) if has_samples else 0, dynamic=dynamic,
                graphs=(case.graph, graph), rounding="nearest" if name == "nearest" else "fitted", threads=2,
            )  # fmt: skip
            made = outcome.converted.program
            found = compared(program, made, rest)
            answers = (f"{found.agreement:.2%}", f"{found.kl:.2g}") if found.width > 1 else ("", "")
            mode = "dynamic" if dynamic else "weights"
            yield case.name, mode, name, *answers, f"{found.snr:.1f}", f"{len(model_bytes(made)):,}"


def compared(program: Program, made: Program, samples: list[Sample]) -> Comparison:
    """Both programs on samples."""
    comparison, exact, coded = Comparison(), ProgramRunner(program), ProgramRunner(made)
    for sample in samples:
        comparison.add(exact(sample)[0], coded.numbers(sample)[0])
    return comparison


if __name__ == "__main__":
    main()
