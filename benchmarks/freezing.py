"""freeze_graph, then strip and fold, on a large TF1 checkpoint, beside TensorFlow 2's freeze_graph and
optimize_for_inference, whole processes from start to end, in one run.

    python benchmarks/freezing.py CHECKPOINT_DIR --input NAME --output NAME --tensorflow PYTHON [--rounds 5]

CHECKPOINT_DIR holds one V2 checkpoint with its .meta. Both tools are given the same flags.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import tempfile

from measure import paired, table, whole_process

OPTIMIZE = "strip_unused_nodes fold_constants(ignore_errors=true) fold_batch_norms fold_old_batch_norms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--tensorflow", required=True, help="the python of an environment with TensorFlow 2")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    prefix = str(next(options.folder.glob("*.index")).with_suffix(""))
    program = [sys.executable, "-m", "pocketgraph"]
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        frozen, small = f"{folder}/frozen.pb", f"{folder}/small.pb"
        freeze_flags = [
            f"--input_meta_graph={prefix}.meta",  # TensorFlow cannot restore resource variables without it
            f"--input_checkpoint={prefix}",
            f"--output_node_names={options.output}",
            f"--output_graph={frozen}",
            "--input_binary=true",
        ]
        for _ in range(options.rounds):
            first = whole_process([*program, "freeze_graph", *freeze_flags])
            second = whole_process(
                [
                    *program,
                    "transform_graph",
                    f"--in_graph={frozen}",
                    f"--out_graph={small}",
                    f"--inputs={options.input}",
                    f"--outputs={options.output}",
                    f"--transforms={OPTIMIZE}",
                ]
            )
            ours.append(first.seconds + second.seconds)
            tools = [options.tensorflow, "-m", "tensorflow.python.tools"]
            first = whole_process([*tools[:2], f"{tools[2]}.freeze_graph", *freeze_flags])
            second = whole_process(
                [
                    *tools[:2],
                    f"{tools[2]}.optimize_for_inference",
                    f"--input={frozen}",
                    f"--output={small}",
                    f"--input_names={options.input}",
                    f"--output_names={options.output}",
                ]
            )
            theirs.append(first.seconds + second.seconds)
    table(
        f"freeze + strip + fold, {options.folder.name}, median of {options.rounds} rounds",
        ["ours s", "TensorFlow 2 s", "ratio"],
        [[f"{statistics.median(ours):.2f}", f"{statistics.median(theirs):.2f}", f"{paired(ours, theirs):.3f}"]],
    )


if __name__ == "__main__":
    main()
