"""Makes exporting/kernel_classes.jsonl.gz: the C++ class of each CPU kernel of TensorFlow 1.15, by op and types.

    python tools/build_kernel_classes.py OUT.jsonl.gz        (in an environment that has TensorFlow 1.15)

TensorFlow's own print_selective_registration_header asks the kernels that are linked into it; this asks them once, for
every op and every choice of types that a kernel is registered for. Classes that differ in their types alone are a
line's pattern: ``["Relu", [["ReluOp<CPUDevice, {::T}>", ["T"], [[1], [2], …]]]]`` has the type of the attribute ``T``,
as the first line spells it, in place of ``{::T}``, or of ``{T}`` without its name space.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import sys

MOST = 5000  # choices of types of one kernel
CPP = {1: "float", 2: "double", 10: "bool", 19: "Eigen::half"}
TENSORFLOW = "::tensorflow::"
TENSORFLOW_CPP = {
    3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "tstring", 8: "complex64", 9: "int64", 11: "qint8", 12: "quint8",
    13: "qint32", 14: "bfloat16", 15: "qint16", 16: "quint16", 17: "uint16", 18: "complex128", 20: "ResourceHandle",
    21: "Variant", 22: "uint32", 23: "uint64",
}  # fmt: skip
SPELLINGS = {**{k: [v, v] for k, v in CPP.items()}, **{k: [v, TENSORFLOW + v] for k, v in TENSORFLOW_CPP.items()}}
"""A type's C++ name by its number, without and with its name space."""


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


def filled(pattern, types):
    """The class that a pattern means for types, numbers by attribute."""
    return re.sub(r"\{(::)?(\w+)\}", lambda found: SPELLINGS[types[found[2]]][bool(found[1])], pattern)


def possible_patterns(name, types):
    """Every pattern that means a class for its types."""
    for order in itertools.permutations(sorted(types)):
        for whole in itertools.product((True, False), repeat=len(order)):
            pattern = name
            for attr, with_space in zip(order, whole):  # noqa: B905  Python 3.7 knows no strict
                spelled = re.escape(SPELLINGS[types[attr]][with_space])
                place = "{::%s}" if with_space else "{%s}"
                pattern = re.sub(rf"(?<![\w:{{]){spelled}(?![\w:}}])", place % attr, pattern)
            yield pattern


def patterns(found):
    """The fewest patterns that a greedy search finds for ``found``, pairs of a class and its types."""
    rows = []
    while found:
        attrs = sorted(found[0][1])
        alike = [(name, types) for name, types in found if sorted(types) == attrs]
        ways = sorted({pattern for name, types in alike[:50] for pattern in possible_patterns(name, types)})
        best = max(ways, key=lambda way: sum(filled(way, types) == name for name, types in alike))
        rows.append([best, attrs, sorted([t[attr] for attr in attrs] for name, t in alike if filled(best, t) == name)])
        found = [(name, types) for name, types in found if sorted(types) != attrs or filled(best, types) != name]
    return rows


def main():
    from tensorflow.core.framework import kernel_def_pb2, node_def_pb2  # noqa: F401
    from tensorflow.python import pywrap_tensorflow
    from tensorflow.python.framework import kernels, op_def_registry  # noqa: F401

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
        ops = [(op, [(name, json.loads(types)) for types, name in sorted(rows[op].items())]) for op in sorted(rows)]
        lines = [SPELLINGS, *([op, patterns(found)] for op, found in ops)]
        file.writelines((json.dumps(line, separators=(",", ":")) + "\n").encode() for line in lines)
    print(len(rows), "ops")


if __name__ == "__main__":
    main()
