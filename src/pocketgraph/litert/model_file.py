"""A whole .tflite file in LiteRT's interpreter: its signatures by name, and sizes that inputs may change."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError, did_you_mean
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.litert.constant import Array
from pocketgraph.litert.native.fork_safety import kept_over_fork
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.running import file_interpreter
from pocketgraph.litert.running.runner import refusals, words
from pocketgraph.litert.tensor_detail import TensorDetail


class FileSignature(NamedTuple):
    """A named way into a file."""

    inputs: dict[str, TensorDetail]
    outputs: dict[str, TensorDetail]


class ModelFile:
    """A .tflite file that is ready to run.

    Args:
        model: the path of the file, or its content.
        threads: how many to compute with.

    Attributes:
        signatures: the ways into it; ``serving_default`` alone for a file without signatures.

    Raises:
        RunError: LiteRT does not take it.
    """

    def __init__(self, model: str | os.PathLike[str] | bytes, threads: int = 1) -> None:
        with quiet(), refusals():
            self._interpreter: Any = kept_over_fork(
                file_interpreter.opened(threads, **file_interpreter.source_of(model))
            )
            self._runners: dict[str, Any] = {}
            self.signatures = self._read()
        self._lock = threading.Lock()

    def _read(self) -> dict[str, FileSignature]:
        listed: dict[str, Any] = self._interpreter.get_signature_list()
        found = {}
        for key in listed:
            runner = self._runners[key] = self._interpreter.get_signature_runner(key)
            found[key] = FileSignature(_infos(runner.get_input_details()), _infos(runner.get_output_details()))
        if found:
            return found
        inputs, outputs = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        return {DEFAULT_SIGNATURE: FileSignature(_infos(_by_name(inputs)), _infos(_by_name(outputs)))}

    def signature(self, key: str) -> FileSignature:
        """The signature of this name.

        Raises:
            RunError: there is none.
        """
        if key not in self.signatures:
            hint = did_you_mean(key, self.signatures) or f"it has {', '.join(map(repr, self.signatures))}"
            raise RunError(f"the file has no signature '{key}'", hint=hint)
        return self.signatures[key]

    def run(self, key: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, in the types that the file has.

        Args:
            key: the signature.
            feeds: arrays by input name; floats become codes where the file takes codes.

        Raises:
            RunError: an input is missing or does not fit, or LiteRT fails.
        """
        signature = self.signature(key)
        with self._lock:
            try:
                arrays = self._fed(signature, feeds)
                if key in self._runners:
                    given: dict[str, Array] = self._runners[key](**arrays)
                    return {name: np.array(given[name]) for name in signature.outputs}
                return self._run_plain(signature, arrays)
            except (RuntimeError, ValueError) as error:
                raise RunError(f"LiteRT failed: {words(error)}", hint=_of_sizes(signature, feeds)) from error

    def numbers(self, key: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """As ``run``; codes are the numbers that they stand for."""
        outputs = self.signature(key).outputs
        return {name: outputs[name].number(array) for name, array in self.run(key, feeds).items()}

    def seconds(self, key: str, feeds: Mapping[str, Array]) -> float:
        """The time of one run, of computing alone where the signature is the file's first."""
        signature = self.signature(key)
        arrays = self._fed(signature, feeds)
        is_first = key == next(iter(self.signatures))
        sizes = {detail["index"]: tuple(detail["shape"]) for detail in self._interpreter.get_input_details()}
        fits = all(sizes.get(info.place) == arrays[name].shape for name, info in signature.inputs.items())
        with self._lock:
            # The interpreter's own invoke refuses as long as signature runners hold it.
            invoke = getattr(getattr(self._interpreter, "_interpreter", None), "Invoke", None)
            if is_first and fits and invoke is not None:
                for name, info in signature.inputs.items():
                    self._interpreter.set_tensor(info.place, arrays[name])
                start = time.perf_counter()
                invoke()
                return time.perf_counter() - start
            start = time.perf_counter()
            self._runners[key](**arrays) if key in self._runners else self._run_plain(signature, arrays)
            return time.perf_counter() - start

    def _fed(self, signature: FileSignature, feeds: Mapping[str, Array]) -> dict[str, Array]:
        missing = [name for name in signature.inputs if name not in feeds]
        if missing:
            raise RunError(f"the input '{missing[0]}' is missing", hint=f"it takes {', '.join(signature.inputs)}")
        arrays = {}
        for name, info in signature.inputs.items():
            array = arrays[name] = info.coded(np.asarray(feeds[name]))
            fits = len(info.shape) == array.ndim and all(
                size in (-1, given) for size, given in zip(info.shape, array.shape, strict=True)
            )
            if not fits:
                shown = ["?" if size < 0 else size for size in info.shape]
                raise RunError(f"the input '{name}' has the shape {shown}, the array {list(array.shape)}")
        return arrays

    def _run_plain(self, signature: FileSignature, arrays: dict[str, Array]) -> dict[str, Array]:
        interpreter = self._interpreter
        details = {detail["index"]: detail for detail in interpreter.get_input_details()}
        for name, info in signature.inputs.items():
            if tuple(details[info.place]["shape"]) != arrays[name].shape:
                interpreter.resize_tensor_input(info.place, arrays[name].shape)
        with quiet():
            interpreter.allocate_tensors()
        for name, info in signature.inputs.items():
            interpreter.set_tensor(info.place, arrays[name])
        interpreter.invoke()
        return {name: np.asarray(interpreter.get_tensor(info.place)) for name, info in signature.outputs.items()}


def _of_sizes(signature: FileSignature, feeds: Mapping[str, Array]) -> str:
    """Which sizes were fed where the file leaves some open; "" where it does not."""
    shown = {name: ["?" if size < 0 else size for size in info.shape] for name, info in signature.inputs.items()}
    fed = [f"'{name}' {sizes} with {list(np.shape(feeds[name]))}" for name, sizes in shown.items() if "?" in sizes]
    return f"the file leaves sizes open and may not take these: {', '.join(fed)}".replace("'?'", "?") if fed else ""


def _by_name(details: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Tensors by their names; of several of one name the later ones get their number behind it."""
    found: dict[str, dict[str, Any]] = {}
    for detail in details:
        name = str(detail["name"])
        found[name if name not in found else f"{name}#{detail['index']}"] = detail
    return found


def _infos(details: Mapping[str, dict[str, Any]]) -> dict[str, TensorDetail]:
    found = {}
    for name, detail in details.items():
        info = TensorDetail.of_interpreter(detail)
        dtype = info.dtype if detail["dtype"] is not np.bytes_ else np.dtype(object)
        shape = info.declared if len(info.declared) == len(info.shape) else info.shape
        found[name] = info._replace(name=name, shape=shape, dtype=dtype, declared=(), place=detail["index"])
    return found
