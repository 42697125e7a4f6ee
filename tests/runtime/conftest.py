"""What the tests of the runtime share."""

from typing import Any

import pytest

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.sizes.resizable import Resizable, Shapes
from pocketgraph.runtime.planning import call_times


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts for the other engine are made however small they are, as the nets of the tests are."""
    monkeypatch.setattr(call_times, "PART_CALL", 0.0)
    monkeypatch.setattr(call_times, "PART_TENSOR", 0.0)


@pytest.fixture
def resized(monkeypatch: pytest.MonkeyPatch) -> list[Shapes]:
    """The shapes that programs for all sizes ran with."""
    found: list[Shapes] = []
    run = Resizable.run

    def noted(self: Resizable, inputs: Any) -> list[Array]:
        results = run(self, inputs)
        found.append(self._shapes)
        return results

    monkeypatch.setattr(Resizable, "run", noted)
    return found
