"""The table of op traits: its rows are ops that exist, and nobody keeps a list of ops of his own without a reason."""

import ast

import pytest

from pocketgraph.graph import opdefs
from pocketgraph.graph.op_traits import ROWS, ops_with, table
from support import ROOT

SOURCE = ROOT / "src" / "pocketgraph"
MANY = 3  # op names in one collection that make it a list of ops
REASON = "Not a trait: "
BEFORE_FIRST_DEFINITION = {"AutoReloadVariable", "Conv1D", "EmbeddingLookup", "IndexTable", "Prelu", "TRTEngineOp"}
"""Ops of older or other writers, which neither TensorFlow 1.15 nor 2.21 defines."""


def own_lists(text: str, ops: frozenset[str]) -> list[str]:
    """The module-level tuples, lists and sets that name ops and give no reason; a dict is a table by op, not a list."""
    body = ast.parse(text).body
    found = []
    for statement, after in zip(body, [*body[1:], None], strict=False):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        value = statement.value
        if isinstance(value, ast.Call):
            if ast.unparse(value.func) not in ("frozenset", "set", "tuple", "sorted") or not value.args:
                continue
            value = value.args[0]
        if not isinstance(value, ast.Tuple | ast.List | ast.Set | ast.BinOp):
            continue
        names = {n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        asked = {a for n in ast.walk(value) if isinstance(n, ast.Call) for a in n.args if isinstance(a, ast.Constant)}
        if len((names - {a.value for a in asked}) & ops) < MANY:
            continue
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        if not (isinstance(said, str) and said.startswith(REASON)):
            found.append(ast.unparse(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target))
    return found


@pytest.fixture(scope="module")
def ops() -> frozenset[str]:
    return frozenset(opdefs.names())


def test_nobody_keeps_a_list_of_ops_without_a_reason(ops: frozenset[str]) -> None:
    found = {
        str(path.relative_to(SOURCE)): lists
        for path in sorted(SOURCE.rglob("*.py"))
        if (lists := own_lists(path.read_text("utf-8"), ops))
    }
    assert found == {}, "ask graph.op_traits for a trait, or say why it is none in a docstring below the list"


def test_such_a_list_would_be_seen(ops: frozenset[str]) -> None:
    assert own_lists('PASSED = ("Identity", "Enter", "Snapshot")', ops) == ["PASSED"]
    assert own_lists('PASSED: Any = frozenset({"Identity", "Enter", "Snapshot"})', ops) == ["PASSED"]
    assert own_lists('PASSED = OTHERS | {"Identity", "Enter", "Snapshot"}', ops) == ["PASSED"]
    assert own_lists('PASSED = ops_with("passes") | {"Enter", "Switch"}', ops) == []
    assert own_lists('PASSED = ("Identity", "Enter", "Snapshot")\n"""Not a trait: one reason."""', ops) == []


def asked_anew(text: str, names: dict[frozenset[str], str]) -> list[str]:
    """The names in op_traits of sets that are asked for by their traits, but for a file's own names."""
    tree = ast.parse(text)
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "ops_with"]
    traits = [frozenset(ast.unparse(argument).strip("'") for argument in call.args) for call in calls]
    return [names[asked] for asked in traits if asked in names and names[asked] not in own]


def test_a_set_that_has_a_name_is_asked_for_by_it() -> None:
    home = SOURCE / "graph" / "op_traits.py"
    names = {
        frozenset(ast.literal_eval(argument) for argument in statement.value.args): ast.unparse(statement.targets[0])
        for statement in ast.parse(home.read_text("utf-8")).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith("ops_with(")
        if isinstance(statement.value, ast.Call)
    }
    assert names[frozenset({"passes", "view"})] == "SAME_ELEMENTS"
    assert asked_anew('x = op in ops_with("view", "passes")', names) == ["SAME_ELEMENTS"]
    assert asked_anew('SUMS = ops_with("sum") | {"BiasAdd"}', names) == []
    texts = {str(path): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py")) if path != home}
    asking = {path: text for path, text in texts.items() if "ops_with" in text}
    assert {path: found for path, text in asking.items() if (found := asked_anew(text, names))} == {}


def test_rows_are_ops_in_order(ops: frozenset[str]) -> None:
    rows = [row.split()[0] for row in ROWS.strip().splitlines()]
    assert rows == sorted(set(rows), key=lambda op: (op.lower(), op))
    assert {row for row in rows if not row.startswith("_")} - ops == BEFORE_FIRST_DEFINITION


def test_a_trait_is_asked_for_by_its_name() -> None:
    assert ops_with("passes") == {
        "Identity",
        "StopGradient",
        "Snapshot",
        "PreventGradient",
        "XlaSharding",
        "XlaClusterOutput",
    }
    assert ops_with("view", "passes") == ops_with("view") | ops_with("passes")
    with pytest.raises(KeyError, match="passing"):
        ops_with("passing")


def test_every_trait_says_what_it_means() -> None:
    from pocketgraph.graph import op_traits

    assert op_traits.__doc__ is not None
    for trait in table():
        assert trait in op_traits.__doc__, trait
