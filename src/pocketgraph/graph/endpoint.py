"""One output of one node, as a value: the address of a tensor."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.graph.node import parse_ref


class Endpoint(NamedTuple):
    """One output of one node; as text, ``node:port``."""

    node: str
    port: int

    @staticmethod
    def of(text: str) -> Endpoint:
        """That of an input or tensor name; of a control input, the port is -1."""
        return Endpoint(*parse_ref(text)[:2])

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"
