"""What a node costs on the reference engine, its small arithmetic included: chains of 2,000 nodes on four numbers.

python benchmarks/overhead.py [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from catalogue import WORKER
from measure import Worker, table
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse

LENGTH = 2000
CHAINS = {
    "Add": "{new} = AddV2({old}, one, T=float)",
    "Relu": "{new} = Relu({old}, T=float)",
    "Mul": "{new} = Mul({old}, one, T=float)",
    "Maximum": "{new} = Maximum({old}, one, T=float)",
    "Reshape": "{new} = Reshape({old}, sizes, T=float, Tshape=int32)",
    "ExpandDims, Squeeze": (
        "{new}a = ExpandDims({old}, zero, T=float, Tdim=int32)\n{new} = Squeeze({new}a, T=float, squeeze_dims=[0])"
    ),
    "StridedSlice": "{new} = StridedSlice({old}, zeros, sizes, ones, T=float, Index=int32, begin_mask=0, end_mask=0)",
    "Cast": "{new}a = Cast({old}, SrcT=float, DstT=int32)\n{new} = Cast({new}a, SrcT=int32, DstT=float)",
}


def chain(line: str) -> str:
    """A graph of about LENGTH nodes, in the text form."""
    per = line.count("\n") + 1
    lines = [
        "x = Placeholder(dtype=float, shape=[4])", "one = Const(float [1, 1, 1, 1])", "zero = Const(int32 0)",
        "sizes = Const(int32 [4])", "zeros = Const(int32 [0])", "ones = Const(int32 [1])",
    ]  # fmt: skip
    old = "x"
    for index in range(LENGTH // per):
        lines.append(line.format(old=old, new=f"n{index}"))
        old = f"n{index}"
    return "\n".join([*lines, f"y = Identity({old}, T=float)"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, line in CHAINS.items():
            folder = pathlib.Path(scratch) / name.split(",")[0]
            folder.mkdir()
            save(parse(chain(line)), folder / "chain.pb")
            info = {"file": "chain.pb", "inputs": {"x:0": {}}, "outputs": {"y:0": {}}}
            (folder / "model.json").write_text(json.dumps(info))
            np.savez(folder / "golden.npz", in_x_0=np.ones(4, np.float32))
            worker = Worker([sys.executable, WORKER, "reference", str(folder), "1"])
            each = [worker.run(3) / LENGTH for _ in range(options.rounds)]
            worker.close()
            rows.append([name, f"{statistics.median(each):.2f}", f"{min(each):.2f}"])
    header = ["op", "us a node", "least"]
    table(f"{LENGTH} nodes on four numbers, one thread, {options.rounds} rounds", header, rows)


if __name__ == "__main__":
    main()
