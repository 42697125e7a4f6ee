"""Files of the official converter whose weights are sparse: LiteRT with XNNPACK takes those that are not of float32 for
dense ones."""

import contextlib
import pathlib

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.litert.untrusted.isolated import IsolatedInterpreter

FILES = pathlib.Path(__file__).parents[1] / "fixtures" / "tflite"
GOLDEN = np.load(FILES / "sparse.npz")


@pytest.mark.parametrize("name", ["sparse_codes", "sparse_few"])
def test_sparse_codes_are_read_as_such(name: str) -> None:
    wanted = GOLDEN[name]
    with Session(FILES / f"{name}.tflite") as session:
        found = session.run("y", {"x": GOLDEN["x"]})[0]
    np.testing.assert_allclose(found, wanted, atol=0.03 * np.abs(wanted).max())
    with contextlib.closing(IsolatedInterpreter(str(FILES / f"{name}.tflite"))) as interpreter:
        np.testing.assert_array_equal(interpreter.run([GOLDEN["x"]])[0], found)


def test_sparse_halves_are_refused_where_nobody_unpacks_them() -> None:
    path = FILES / "sparse_halves.tflite"
    with pytest.raises(RunError, match="sparse weights of float16"), Session(path) as session:
        session.run("y", {"x": GOLDEN["x"]})
    with pytest.raises(PocketgraphError, match="sparse weights of float16"):
        IsolatedInterpreter(str(path))
