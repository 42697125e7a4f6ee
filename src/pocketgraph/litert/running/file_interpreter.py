"""LiteRT's interpreter for a .tflite file that somebody else made, with kernels that read its weights as they are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pocketgraph.litert.host import is_utf8


def source_of(model: str | os.PathLike[str] | bytes) -> dict[str, Any]:
    """A file's path, or its content, as arguments of LiteRT's Interpreter. Its package takes no path but of UTF-8; of
    another one the file is read.

    Raises:
        OSError: it cannot be.
    """
    if isinstance(model, bytes):
        return {"model_content": model}
    path = os.fspath(model)
    if not is_utf8(path):
        with open(path, "rb") as file:
            return {"model_content": file.read()}
    return {"model_path": path}


def opened(threads: int, **source: Any) -> Any:
    """An interpreter that is ready to run, or to be given the sizes that the file leaves open.

    XNNPACK takes sparse weights of eight bits for dense ones: results are wrong where it does not refuse the file.
    LiteRT's own kernels know how they are stored. Sparse weights of float16 nobody reads right but the operator that
    makes them dense.

    Args:
        threads: how many to compute with.
        source: the file, as Interpreter takes it (see ``source_of``).

    Raises:
        RuntimeError, ValueError: LiteRT does not take the file, or would compute with other weights than are in it.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter: Any = Interpreter(num_threads=threads, **source)
    sparse = _narrow_sparse(interpreter)
    if sparse:
        unread = sorted(name for kind, name in sparse.values() if kind is np.float16)
        if unread and _reads_unpacked(interpreter, sparse):
            raise RuntimeError(
                f"it reads sparse weights of float16 as if all of them were there ('{unread[0]}'): convert the model "
                "without float16, or without sparsity"
            )
        if any(kind is not np.float16 for kind, _ in sparse.values()):
            interpreter = Interpreter(
                num_threads=threads,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                **source,
            )
    try:
        interpreter.allocate_tensors()
    except RuntimeError:
        if not any(-1 in detail["shape_signature"] for detail in interpreter.get_input_details()):
            raise  # else 1 stands in the file for open sizes, which a window, say, need not fit into
    return interpreter


def _narrow_sparse(interpreter: Any) -> dict[int, tuple[Any, str]]:
    """The type and the name of each sparse tensor that is not of float32, by its number."""
    core: Any = getattr(interpreter, "_interpreter", None)
    if not all(hasattr(core, name) for name in ("NumTensors", "TensorSparsityParameters", "TensorType")):
        return {}  # of another LiteRT
    return {
        index: (core.TensorType(index, 0), core.TensorName(index, 0))
        for index in range(core.NumTensors(0))
        if core.TensorSparsityParameters(index, 0) and core.TensorType(index, 0) is not np.float32
    }


def _reads_unpacked(interpreter: Any, sparse: dict[int, tuple[Any, str]]) -> bool:
    """Whether an operator but DENSIFY takes one of the sparse tensors of float16."""
    wanted = {index for index, (kind, _) in sparse.items() if kind is np.float16}
    core = interpreter._interpreter
    return any(
        core.NodeName(node) != "DENSIFY" and not wanted.isdisjoint(map(int, core.NodeInputs(node)))
        for node in range(core.NumNodes())
    )
