"""What nobody needs is dropped, and equal operators become one, before the file is written."""

from __future__ import annotations

from pocketgraph.exporting.onnx.program import Body, OnnxOperation, used_by


def cleaned(body: Body) -> Body:
    """The body without operators whose results nobody takes; changed in place."""
    _drop(body, set())
    return body


def _drop(body: Body, wanted: set[int]) -> set[int]:
    """Drops what neither the body's outputs nor ``wanted`` need; gives back what it takes from outside."""
    needed = {id(value) for value in body.outputs} | wanted
    kept: list[OnnxOperation] = []
    for operation in reversed(body.operations):
        if not any(value is not None and id(value) in needed for value in operation.outputs):
            continue
        for inner in operation.bodies.values():
            _drop(inner, set())
        needed.update(id(value) for value in used_by(operation))
        kept.append(operation)
    body.operations[:] = reversed(kept)
    return needed
