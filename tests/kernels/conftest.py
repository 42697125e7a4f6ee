"""Kernels are tested as the engine runs them: what NumPy says of infinities and NaN is not said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _as_the_engine_runs_them() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
