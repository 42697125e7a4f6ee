"""Runs a LiteRT model file with packed weights that are mapped from the cache."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert import host
from pocketgraph.litert.native import native_model
from pocketgraph.litert.native.fork_safety import kept_over_fork
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.running.runner import Runner, close_at_exit, end_with_process, package_environment, refusals

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class PackedRunner(Runner):
    """LiteRT's compiled model, whose packed weights are a file: written the first time, only mapped from then on."""

    def __init__(self, model: str, packed: str, threads: int, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> None:
        """``packed`` is the file of packed weights, or where to make it; ``outputs`` are (shape, NumPy dtype)."""
        with quiet(), refusals():
            self._model: native_model.NativeModel | _PackageModel | None = _opened(model, packed, threads, outputs)
        if not os.path.exists(packed) or not os.path.getsize(packed):
            self.close()
            raise RunError("LiteRT did not write the packed weights")
        close_at_exit(self)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        model = self._model
        if model is None:
            raise RunError("the part is closed")
        return model.run([array if array.flags.c_contiguous else np.ascontiguousarray(array) for array in inputs])

    @property
    def is_delegated(self) -> bool:
        """Whether XNNPACK is known to run all of it."""
        return bool(getattr(self._model, "is_delegated", False))

    def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            with quiet():
                model.close()


def _opened(
    model: str, packed: str, threads: int, outputs: Sequence[tuple[tuple[int, ...], Any]]
) -> native_model.NativeModel | _PackageModel:
    """The model in LiteRT's C library, or where that is another one than is known, in its Python package.

    Raises:
        RuntimeError: LiteRT does not take it, or the processor does not take what the package loads.
    """
    with contextlib.suppress(*native_model.UNKNOWN):
        opened = native_model.NativeModel(model, threads, packed, outputs)
        end_with_process()
        return opened
    if not host.runs_gpu_library():
        raise RuntimeError("this processor lacks instructions that LiteRT's compiled models take")
    return _PackageModel(model, threads, packed, outputs)


class _PackageModel:
    """A compiled model of LiteRT's Python package."""

    def __init__(self, model: str, threads: int, packed: str, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> None:
        from ai_edge_litert.compiled_model import CompiledModel, CpuOptions, Options

        options = Options(cpu_options=CpuOptions(num_threads=threads, xnnpack_weight_cache_path=packed))
        self._outputs = [(shape, dtype, int(np.prod(shape, dtype=np.int64))) for shape, dtype in outputs]
        self._model: Any = kept_over_fork(
            CompiledModel.from_file(model, environment=package_environment(), options=options)
        )
        self._inputs = self._model.create_input_buffers(0)
        self._results = self._model.create_output_buffers(0)
        self._read()  # the first access to a buffer starts, audibly, the rest of LiteRT

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        for buffer, array in zip(self._inputs, inputs, strict=True):
            buffer.write(array)
        self._model.run_by_index(0, self._inputs, self._results)
        return self._read()

    def _read(self) -> list[Array]:
        return [
            buffer.read(count, dtype).reshape(shape)
            for buffer, (shape, dtype, count) in zip(self._results, self._outputs, strict=True)
        ]

    def close(self) -> None:
        self._inputs, self._results, self._model = [], [], None
