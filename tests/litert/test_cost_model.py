"""The cost model is one table: each figure has a unit and is used, and none is kept elsewhere."""

import pathlib
import re
from collections import Counter

import pocketgraph
from pocketgraph.litert import cost_model

SOURCES = pathlib.Path(pocketgraph.__file__).parent
ROW = re.compile(r"^([A-Z_]+) = ([^#]+?)  # (\S+): \S", re.MULTILINE)
UNITS = {
    "µs", "nodes", "elements", "scores", "boxes", "calls", "runs", "steps", "bytes", "multiplications", "rounds",
    "layers", "operators", "share", "channels", "pixels", "plans", "seconds",
}  # fmt: skip


def test_each_figure_has_a_unit_and_is_used() -> None:
    assert cost_model.__file__ is not None
    rows = ROW.findall(pathlib.Path(cost_model.__file__).read_text())
    names = [name for name, _, _ in rows]
    assert names == [name for name in vars(cost_model) if name.isupper()]
    assert {unit for _, _, unit in rows} <= UNITS
    code = "\n".join(
        path.read_text() for part in ("litert", "runtime", "exporting") for path in (SOURCES / part).rglob("*.py")
    )
    found = Counter(re.findall(r"\b[A-Z_]+\b", code))
    unused = [name for name in names if found[name] < 3]  # the row, an import, a use
    assert not unused
