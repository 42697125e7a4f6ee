"""Einsum on LiteRT, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2, "f": 3}


def graph(equation: str, constant: str | None = None) -> tuple[Graph, dict[str, np.ndarray]]:
    terms = equation.split("->")[0].split(",")
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.normal(0, 1, [SIZES[label] for label in term.strip()]).astype(np.float32)
        for name, term in zip("xy", terms, strict=False)
    }
    lines = [
        f"{name} = Placeholder(dtype=float, shape={list(array.shape)})"
        for name, array in arrays.items()
        if name != constant
    ]
    refs = ", ".join(arrays)
    made = parse("\n".join([*lines, f'z = Einsum({refs}, equation="{equation}", N={len(arrays)}, T=float)']))
    return made.replace([*made, *([const(constant, arrays[constant])] if constant else [])]), arrays


@pytest.mark.parametrize("constant", [None, "x", "y"])
@pytest.mark.parametrize(
    "equation",
    ["abc,cde->abde", "abcd,aecd->acbe", "ab,bc->ac", "ab,bc->ca", "abc,dc -> abd", "abcd,cde->abe", "ab,cd->dbac",
     "abc,abc->ab", "acbe,aecd->abcd", "ab,ab->ab", "bc,cabd->dab",
     "ab,bc->a", "ab,bc->", "abd,ecdf->caf", "abd,eabcf->abc"],
)  # fmt: skip
def test_two_operands_are_one_product(equation: str, constant: str | None) -> None:
    made, arrays = graph(equation, constant)
    session = Session(made, engine="litert")
    result = session.run(["z"], {name: array for name, array in arrays.items() if name != constant})[0]
    wanted = np.einsum(equation, *arrays.values())
    assert result.shape == wanted.shape
    assert np.abs(result - wanted).max() < 1e-5


@pytest.mark.parametrize("equation", ["ab->ba", "abc->ca", "abcd->", "ab->ab", "...a->a...", "a...->..."])
def test_one_operand_is_summed_and_turned(equation: str) -> None:
    x = np.random.default_rng(1).normal(0, 1, (2, 3, 4, 5)[: max(2, len(equation.split("->")[0]))]).astype(np.float32)
    made = parse(f"""
        x = Placeholder(dtype=float, shape={list(x.shape)})
        z = Einsum(x, equation="{equation}", N=1, T=float)
    """)
    result = Session(made, engine="litert").run(["z"], {"x": x})[0]
    wanted = np.einsum(equation, x)
    assert result.shape == wanted.shape
    assert np.abs(result - wanted).max() < 1e-4


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [("...a,ab->...b", (2, 3, 4), (4, 5)), ("...ab,...bc->...ac", (2, 3, 4), (2, 4, 5)),
     ("a...b,b...->...a", (2, 3, 4), (4, 3)), ("...ab,...bc->...ca", (2, 2, 3, 4), (2, 2, 4, 5)),
     ("...ab,...bc->...ac", (2, 2, 3, 4), (2, 4, 5))],
)  # fmt: skip
def test_an_ellipsis_stands_for_the_last_axes(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.normal(0, 1, shape).astype(np.float32) for shape in (first, second))
    made = parse(f"""
        x = Placeholder(dtype=float, shape={list(first)})
        y = Placeholder(dtype=float, shape={list(second)})
        z = Einsum(x, y, equation="{equation}", N=2, T=float)
    """)
    wanted = np.einsum(equation, x, y)
    result = Session(made, engine="litert").run(["z"], {"x": x, "y": y})[0]
    assert result.shape == wanted.shape
    assert np.abs(result - wanted).max() < 1e-5


@pytest.mark.parametrize("equation", ["aa->a", "aa->", "aba->ba", "aaab->ab", "aab,bc->ac", "ab,cbc->ca"])
def test_of_an_axis_that_an_operand_has_twice_the_diagonal_is_taken(equation: str) -> None:
    sizes = {"a": 3, "b": 4, "c": 5}
    rng = np.random.default_rng(4)
    arrays = [
        rng.normal(0, 1, [sizes[label] for label in term]).astype(np.float32)
        for term in equation.split("->")[0].split(",")
    ]
    names = ["x", "y"][: len(arrays)]
    lines = [f"{n} = Placeholder(dtype=float, shape={list(x.shape)})" for n, x in zip(names, arrays, strict=True)]
    made = parse("\n".join([*lines, f'z = Einsum({", ".join(names)}, equation="{equation}", N={len(names)}, T=float)']))
    result = Session(made, engine="litert").run(["z"], dict(zip(names, arrays, strict=True)))[0]
    np.testing.assert_allclose(result, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "joined"), [("bqhd,bkhd->bhqk", 0), ("bhqk,bkhd->bqhd", 0), ("abcdef,abcdfg->abcdeg", 3)]
)
def test_axes_of_a_batch_stay_apart_where_litert_takes_so_many(equation: str, joined: int) -> None:
    """A reshape of several open sizes is none of XNNPACK's: attention was cut into parts there, between copies."""
    sizes = {label: 2 + place for place, label in enumerate("abcdefghkq")}
    first, second = ([sizes[label] for label in term] for term in equation.split("->")[0].split(","))
    rng = np.random.default_rng(3)
    x, y = (rng.normal(0, 1, shape).astype(np.float32) for shape in (first, second))
    made = parse(f"""
        x = Placeholder(dtype=float, shape={first})
        y = Placeholder(dtype=float, shape={second})
        z = Einsum(x, y, equation="{equation}", N=2, T=float)
    """)
    session = Session(made, engine="litert", cache_dir="")
    result = session.run(["z"], {"x": x, "y": y})[0]
    np.testing.assert_allclose(result, np.einsum(equation, x, y), rtol=1e-4, atol=1e-4)
    (executable,) = next(iter(session._calls.plans.values())).executables
    assert executable.program is not None
    assert sum(operation.code == "RESHAPE" for operation in executable.program.operations) == joined
