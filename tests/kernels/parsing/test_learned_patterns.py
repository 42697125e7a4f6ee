"""Patterns of Example records that several threads share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.parsing.test_example_columns import as_encoders_write
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.parsing import example_columns, example_pattern


def test_a_pattern_that_another_thread_drops_meanwhile_reads_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the pattern but the first finds none, as where another thread's records did not fit."""
    monkeypatch.setattr(example_pattern, "FIRST_LEARNED", 1)

    class Dropped(example_pattern._Learned):
        looks = 0

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name != "pattern" or found is None:
                return found
            self.looks += 1
            return found if self.looks == 1 else None

    learned = Dropped({b"a": INT64})
    batch = as_encoders_write([{b"a": (3, [number])} for number in (1, 2, 3)])
    memory = example_columns.new_array
    assert learned.read(batch, memory) is None  # it learns
    found = learned.read(batch, memory)
    assert found is not None
    np.testing.assert_array_equal(found[b"a"].values, [1, 2, 3])
