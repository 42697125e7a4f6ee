"""Builds the op table (src/pocketgraph/graph/opdefs.jsonl.gz) from two OpList files, an old one and a new one.

    python tools/build_opdefs.py opdefs_tf1_15.pb.gz opdefs_tf2_21.pb.gz opdefs_tf1_15_contrib.pb.gz

Each op is taken from the newest list that has it. The third list holds the ops of TensorFlow 1.15's contrib libraries
(``tools/list_contrib_ops.py`` makes it); they count as old ones. What each line holds is said in
pocketgraph/graph/opdefs.py.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from pocketgraph.formats.attr_value import decode_attr
from pocketgraph.formats.protos import message
from pocketgraph.graph import DType, Func, Shape, Tensor
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.litert.lowering import LOWERINGS

ADDONS = ("AdjustHsvInYiq", "GatherTree", "ImageProjectiveTransformV2", "Resampler")
"""Ops of the contrib libraries that TensorFlow Addons has for TensorFlow 2, with ``Addons>`` before the name."""

OUTPUT = Path(__file__).parent.parent / "src" / "pocketgraph" / "graph" / "opdefs.jsonl.gz"


def read(path: str) -> dict[str, Any]:
    ops: Any = message("tensorflow.OpList").FromString(gzip.decompress(Path(path).read_bytes()))
    return {op.name: op for op in ops.op}


def plain(value: Any) -> Any:
    """An attribute value as JSON; the attribute's kind tells how to read it back."""
    if isinstance(value, tuple):
        return [plain(member) for member in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Shape):
        return None if value.dims is None else list(value.dims)
    if isinstance(value, Tensor):
        return [value.dtype.name, list(value.shape), value.numpy().ravel().tolist()]
    if isinstance(value, Func):
        return value.name
    assert isinstance(value, bool | int | float), value
    return value


def decoded(value: Any) -> Any:
    encoded = value.SerializeToString()
    return plain(decode_attr(encoded, 0, len(encoded), "op table"))


def argument(arg: Any) -> list[Any]:
    if arg.type_list_attr:
        entry: list[Any] = [arg.name, "*" + arg.type_list_attr]
    else:
        entry = [arg.name, "$" + arg.type_attr if arg.type_attr else DType.of(arg.type).name]
    if arg.number_attr or arg.is_ref:
        entry.append(arg.number_attr)
    if arg.is_ref:
        entry.append(1)
    return entry


def attribute(attr: Any, old: Any) -> list[Any]:
    """An attribute's entry; ``old`` is TensorFlow 1.15's definition of it, or None."""
    more = {}
    if attr.HasField("default_value"):
        more["default"] = decoded(attr.default_value)
    if attr.HasField("allowed_values"):
        more["allowed"] = decoded(attr.allowed_values)
        known = decoded(old.allowed_values) if old and old.HasField("allowed_values") else more["allowed"]
        newer = [value for value in more["allowed"] if value not in known]
        if newer:
            more["newer"] = newer
    if attr.has_minimum:
        more["minimum"] = attr.minimum
    if not old:
        more["since"] = "2.x"
    return [attr.name, attr.type, more] if more else [attr.name, attr.type]


def line(op: Any, old: Any, new: Any) -> str:
    known = {attr.name: attr for attr in (old or op).attr}
    more: dict[str, Any] = {}
    if op.is_stateful:
        more["stateful"] = 1
    if not old or not new:
        more["only"] = "1.15" if old else "2.x"
    entry = [
        op.name,
        [argument(arg) for arg in op.input_arg],
        [argument(arg) for arg in op.output_arg],
        [attribute(attr, known.get(attr.name)) for attr in op.attr],
    ]
    return json.dumps([*entry, more] if more else entry, separators=(",", ":"))


def addon(op: Any) -> Any:
    copy = type(op)()
    copy.CopyFrom(op)
    copy.name = f"Addons>{op.name}"
    return copy


def main(old_path: str, new_path: str, contrib_path: str) -> None:
    old, new, contrib = read(old_path), read(new_path), read(contrib_path)
    new.update((f"Addons>{name}", addon(new.get(name, contrib[name]))) for name in ADDONS)
    old = {**contrib, **old}
    ops = old.keys() | new.keys()
    write({name: line(new.get(name) or old[name], old.get(name), new.get(name)) for name in ops})


def write(lines: dict[str, str]) -> None:
    """Writes the table of the lines by op."""
    common = set(LOWERINGS) | ops_with("constant", "placeholder", "passes")
    members = [[lines[op] for op in sorted(lines) if (op in common) == wanted] for wanted in (True, False)]
    packed = [gzip.compress("\n".join(["", *member, ""]).encode("ascii"), mtime=0) for member in members]
    OUTPUT.write_bytes(b"".join(packed))
    print(f"{OUTPUT}: {len(members[0])} common ops, {len(members[1])} others, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
