"""How long this process may compare compiled parts with the reference engine while somebody waits for answers."""

from __future__ import annotations

import time

from pocketgraph.litert.cost_model import CHECKED_AT_ONCE, CHECKED_SHARE

_spent = 0.0  # seconds


def allows(microseconds: float) -> bool:
    """Whether a comparison of about so long fits: some milliseconds, and a share of what the process has computed."""
    return _spent + microseconds / 1e6 <= CHECKED_AT_ONCE / 1e6 + CHECKED_SHARE * time.process_time()


def spend(seconds: float) -> None:
    """Notes what a comparison took."""
    global _spent
    _spent += seconds
