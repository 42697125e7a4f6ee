"""The refusal: a node that ONNX has no words for."""

from __future__ import annotations

from pocketgraph.errors import GraphError


class UnsupportedInOnnx(GraphError):  # noqa: N818 - it is an answer to a question more often than an error
    """A node that ONNX cannot compute, or not as TensorFlow does.

    Attributes:
        reason: why.
        node: the node's name.
    """

    def __init__(self, reason: str, node: str = "") -> None:
        super().__init__(reason, where=f"node '{node}'" if node else "")
        self.reason = reason
        self.node = node
