"""Makes exporting/kernel_classes.jsonl.gz: the C++ class of each CPU kernel of TensorFlow 1.15, by op and types.

    python tools/build_kernel_classes.py OUT.jsonl.gz        (in an environment that has TensorFlow 1.15)

TensorFlow's own print_selective_registration_header asks the kernels that are linked into it; this asks them once, for
every op and every choice of types that a kernel is registered for.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys

from tensorflow.core.framework import kernel_def_pb2, node_def_pb2  # noqa: F401
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.framework import kernels, op_def_registry  # noqa: F401

MOST = 5000  # choices of types of one kernel


def choices(kernel):
    """Every choice of types of one kernel, as tuples of (attribute, type numbers)."""
    lists = [
        [(constraint.name, number) for number in constraint.allowed_values.list.type]
        for constraint in kernel.constraint
    ]
    count = 1
    for one in lists:
        count *= max(len(one), 1)
    return itertools.product(*lists) if count <= MOST else [()]


def main():
    rows = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type not in ("CPU", "DEFAULT"):
            continue
        for chosen in choices(kernel):
            node = node_def_pb2.NodeDef(name="n", op=kernel.op, device="/cpu:0")
            for name, number in chosen:
                node.attr[name].type = number
            found = pywrap_tensorflow.TryFindKernelClass(node.SerializeToString())
            if found:
                rows.setdefault(kernel.op, {})[json.dumps(dict(chosen), sort_keys=True)] = found.decode()
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as file:
        for op in sorted(rows):
            by_class = {}
            for types, name in sorted(rows[op].items()):
                by_class.setdefault(name, []).append(json.loads(types))
            line = json.dumps([op, sorted(by_class.items())], separators=(",", ":"), sort_keys=True)
            file.write((line + "\n").encode())
    print(len(rows), "ops")


if __name__ == "__main__":
    main()
