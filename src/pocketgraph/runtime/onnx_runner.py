"""An ONNX file in ONNX Runtime, where that is installed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pocketgraph.errors import MissingExtraError, RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.part_engines.part_engine import OperationTime
from pocketgraph.runtime.part_engines.telemetry import without_telemetry

FOLDER = "session.model_external_initializers_file_folder_path"
"""ONNX Runtime's name for where the weights of a file lie that is not opened by its path."""
MOST_SAID = 300
"""Characters of ONNX Runtime's own message that are handed on."""
KERNEL = "_kernel_time"
"""How the events of ONNX Runtime's profile end that are a node's own time."""
PROFILED = 4
"""Runs that are profiled; others on the machine make some of them longer."""


class OnnxRunner:
    """A file on the CPU; texts go in and out as bytes."""

    def __init__(
        self,
        source: str | bytes,
        threads: int | None = None,
        *,
        folder: str = "",
        profile: str = "",
        where: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Opens it.

        Args:
            source: the path of the file, or its content.
            threads: how many to compute with; None for as many as there are cores.
            folder: where the files of large constants lie, where only the content is given.
            profile: ONNX Runtime writes what nodes took to a file whose name begins so.
            where: the file, for messages.
            settings: of ONNX Runtime's session, by its own names.

        Raises:
            MissingExtraError: ONNX Runtime is not installed.
            RunError: it refuses the file.
        """
        if find_spec("onnxruntime") is None:
            raise MissingExtraError(
                "to run an ONNX file needs the package 'onnxruntime'", hint="pip install 'pocketgraph[onnx]'"
            )
        onnxruntime = without_telemetry("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads or 0, 4
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, profile
        for name, value in (settings or {}).items():
            options.add_session_config_entry(name, value)
        if folder:
            options.add_session_config_entry(FOLDER, os.path.abspath(folder))
        self._where = where or (source if isinstance(source, str) else "")
        try:
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions have no family of their own
            raise self._error("does not take this file", error) from error
        if isinstance(source, bytes) and hasattr(self._session, "_model_bytes"):
            self._session._model_bytes = b""  # kept for other providers than the one that there is
        self.inputs: list[str] = [item.name for item in self._session.get_inputs()]
        """The names of what goes in."""

    def prepared(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The feeds as ONNX Runtime takes them: texts as str, and no names that are no inputs."""
        return {name: _as_text(np.asarray(value)) for name, value in feeds.items() if name in self.inputs}

    def run(self, outputs: Sequence[str] | None, feeds: Mapping[str, Array]) -> list[Array]:
        """These outputs, by default all.

        Raises:
            RunError: ONNX Runtime fails.
        """
        try:
            results: Sequence[Any] = self._session.run(outputs, self.prepared(feeds))
        except Exception as error:
            raise self._error("failed", error) from error
        return [_as_bytes(np.asarray(value)) for value in results]

    def numbers(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs of a file without texts, for just its inputs: a quicker ``run``.

        Raises:
            RunError: ONNX Runtime fails.
        """
        try:
            results: list[Array] = self._session.run(None, feeds)
        except Exception as error:
            raise self._error("failed", error) from error
        return results

    def end_profiling(self) -> str:
        """The path of the profile."""
        return str(self._session.end_profiling())

    def _error(self, what: str, error: Exception) -> RunError:
        return RunError(f"ONNX Runtime {what}: {' '.join(str(error).split())[:MOST_SAID]}", where=self._where)


def node_times(
    opened: Callable[[str], OnnxRunner], outputs: Sequence[str] | None, feeds: Mapping[str, Array]
) -> list[OperationTime]:
    """The times of all nodes in the quickest of several runs, by ONNX Runtime's profile, after its fusions.

    Args:
        opened: opens the file with this ``profile``.
        outputs, feeds: as for ``OnnxRunner.run``.
    """
    with tempfile.TemporaryDirectory(prefix="pocketgraph-profile-") as folder:
        runner = opened(os.path.join(folder, "run"))
        for _ in range(PROFILED):
            runner.run(outputs, feeds)
        with open(runner.end_profiling(), encoding="utf-8", errors="replace") as file:  # names are any bytes
            events = json.load(file)
    runs = [(event["ts"], event["ts"] + event["dur"]) for event in events if event.get("name") == "model_run"]
    begin, end = min(runs, key=lambda run: run[1] - run[0], default=(0, 0))
    return [
        OperationTime(
            event["name"].removesuffix(KERNEL),
            event["args"]["op_name"],
            float(event["dur"]),
            int(event["args"].get("output_size", 0) or 0),
        )
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith(KERNEL) and begin <= event["ts"] <= end
    ]


def _as_text(array: Array) -> Array:
    if array.dtype.kind not in "OS":
        return array
    texts = [item if isinstance(item, str) else bytes(item).decode() for item in array.reshape(-1)]
    made: Array = np.array(texts, object).reshape(array.shape)
    return made


def _as_bytes(array: Array) -> Array:
    if array.dtype.kind not in "OU":
        return array
    contents: Array = np.array([str(item).encode() for item in array.reshape(-1)], object).reshape(array.shape)
    return contents
