"""One output of one node, as a value: the address of a tensor."""

from __future__ import annotations

from typing import NamedTuple


class Endpoint(NamedTuple):
    """One output of one node; as text, ``node:port``."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"
