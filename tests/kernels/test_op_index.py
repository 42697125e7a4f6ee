"""Which module holds which op: the indexes are right, an op has one family in all tables, no room is overfull."""

import ast
import pathlib
import subprocess
import sys

import mypy.api
import pytest

from pocketgraph.kernels import registry
from pocketgraph.kernels.op_table import OpTable
from pocketgraph.kernels.shapes import rules
from pocketgraph.litert.lowering import LOWERINGS
from support import ROOT

MOST_FILES = 25  # modules in one room


def test_the_indexes_are_what_the_modules_register() -> None:
    told = subprocess.run(
        [sys.executable, "tools/build_op_index.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr


def test_every_decorated_kernel_is_in_the_index() -> None:
    """Read off the files: what writes the index imports them, and could pass over one that was imported before."""
    place = ROOT / "src" / "pocketgraph" / "kernels"
    for path in place.rglob("*.py"):  # in folders that what writes the index does not look into, too
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "kernel":
                ops = [each.value for each in node.args if isinstance(each, ast.Constant)]
                home = ".".join(path.relative_to(place).with_suffix("").parts)
                assert [registry.KERNELS.homes([op]) for op in ops] == [[home]] * len(ops), path


ROWS = {
    "KERNELS": 1035, "SHAPE_RULES": 673, "LOWERINGS": 236, "GRADIENTS": 383, "CONVERTERS": 335, "TRANSLATIONS": 110,
    "PLAIN": 97, "CODED": 68,
}  # fmt: skip
"""How many ops each table had when they were counted last; it has no fewer."""


def test_no_op_leaves_a_table_unnoticed() -> None:
    """A module that moves to where no table looks for it takes its ops along, and a new index agrees."""
    text = (ROOT / "src" / "pocketgraph" / "kernels" / "op_index.txt").read_text("utf-8")
    tables = [part.splitlines() for part in text.split("\n\n")]
    found = {name.strip("[]"): sum(len(line.split()) - 1 for line in lines) for name, *lines in tables}
    assert found.keys() == ROWS.keys()
    assert [name for name, least in ROWS.items() if found[name] < least] == []


def families(table: OpTable) -> dict[str, str]:
    return {op: table.homes([op])[0].partition(".")[0] for op in table}


def test_an_op_is_of_one_family_in_all_tables() -> None:
    kernels = families(registry.KERNELS)
    for table in (rules.SHAPE_RULES, LOWERINGS):
        other = families(table)
        assert {op: kernels[op] for op in other if op in kernels} == {op: other[op] for op in other if op in kernels}
        assert other.keys() & kernels.keys()


@pytest.mark.parametrize("folder", ["kernels", "kernels/shapes", "litert/lowerings"])
def test_no_room_is_overfull_and_all_have_the_same_names(folder: str) -> None:
    place = ROOT / "src" / "pocketgraph" / folder
    rooms = {path.name for path in place.iterdir() if (path / "__init__.py").exists()} - {"shapes"}
    assert rooms <= {home.partition(".")[0] for table in ALL for home in table.homes(table)}
    for room in rooms:
        assert len(list((place / room).glob("*.py"))) - 1 <= MOST_FILES, room


ALL = (registry.KERNELS, rules.SHAPE_RULES, LOWERINGS)


def test_what_an_op_needs_is_imported_and_nothing_else() -> None:
    code = (
        "import sys; from pocketgraph.kernels import registry; assert registry.KERNELS.row('Relu')\n"
        "print(*sorted(m for m in sys.modules if m.startswith('pocketgraph.kernels.') and m.count('.') > 2))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["pocketgraph.kernels.nn.activations"]


def test_an_op_that_nobody_computes_has_no_row() -> None:
    for table in ALL:
        assert table.row("NoSuchOp") is None
        assert "NoSuchOp" not in table
        assert table.homes(["NoSuchOp"]) == []
        table.load(["no_such.module", "nn.no_such"])  # what an older version kept


def test_an_op_has_one_row_in_a_table() -> None:
    assert registry.KERNELS.row("Relu") is not None
    with pytest.raises(ValueError, match="Relu has two kernels"):
        registry.kernel("Relu")(lambda features: features)
    with pytest.raises(ValueError, match="Cast has two shape rules"):
        assert rules.SHAPE_RULES.row("Cast")
        rules.shape_rule("Cast")(lambda call: call.shape(0))


def test_a_row_of_one_expression_is_checked_for_its_types(tmp_path: pathlib.Path) -> None:
    """Of rows that are functions, annotations say what they take; of a lambda, the table alone can."""
    file = tmp_path / "rows.py"
    file.write_text("""
from collections.abc import Callable
from pocketgraph.kernels.op_table import OpTable

TABLE: OpTable[Callable[[str], str]] = OpTable("rule", "rules", "RULES")
TABLE.enters("Upper")(lambda text: text.uper())
""")
    alone = ("--config-file=", "--follow-imports=skip", f"--cache-dir={tmp_path / 'cache'}")
    told, _, _ = mypy.api.run([*alone, str(file), str(ROOT / "src" / "pocketgraph" / "kernels" / "op_table.py")])
    assert 'rows.py:6: error: "str" has no attribute "uper"' in told


def test_an_exporter_imports_what_its_operators_need_and_nothing_else() -> None:
    code = (
        "import sys; from pocketgraph.exporting.onnx.converter_table import CONVERTERS\n"
        "assert CONVERTERS.row('TopKV2')\n"
        "print(*sorted(m for m in sys.modules if m.startswith('pocketgraph.exporting.onnx.ops.')))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pocketgraph.exporting.onnx.ops.sorting" in told.stdout.split()
    assert "pocketgraph.exporting.onnx.ops.recurrent" not in told.stdout.split()
