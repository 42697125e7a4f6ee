"""Which ops have kernels that a user registered; a module of its own, since a warm start imports no kernels."""

from __future__ import annotations

_ops: frozenset[str] = frozenset()


def user_ops() -> frozenset[str]:
    """The ops; another set after each change."""
    return _ops


def set_user_ops(ops: frozenset[str]) -> None:
    global _ops
    _ops = ops
