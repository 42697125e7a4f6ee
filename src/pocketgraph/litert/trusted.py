"""Runs a .tflite file that this process wrote itself; see isolated.py for those of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.missing_operators import REGISTERED, missing_operator
from pocketgraph.litert.native.fork_safety import kept_over_fork
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.tensor_detail import TensorDetail
from pocketgraph.litert.untrusted.isolated_worker import run_timed


class TrustedInterpreter:
    """The bytes of a .tflite file in LiteRT's interpreter, in this process.

    Attributes:
        inputs: what it takes.
        outputs: what it gives.
        seconds: how long the last run took.
    """

    def __init__(self, content: bytes, threads: int = 1, name: str = "") -> None:
        """``name`` is for messages.

        Raises:
            FormatError: LiteRT does not take the file.
        """
        from ai_edge_litert.interpreter import Interpreter

        try:
            with quiet():
                self._interpreter: Any = kept_over_fork(Interpreter(model_content=content, num_threads=threads))
                self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            if missing := missing_operator(str(error)):
                raise FormatError(missing, where=name, hint=REGISTERED) from error
            raise FormatError(f"LiteRT cannot run this file: {' '.join(str(error).split())}", where=name) from error
        self._sides = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self.inputs, self.outputs = ([TensorDetail.of_interpreter(entry) for entry in side] for side in self._sides)
        self.seconds = 0.0

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input.

        Raises:
            RuntimeError, ValueError: LiteRT fails.
        """
        self.seconds = run_timed(self._interpreter, self._sides[0], list(arrays))
        return [np.asarray(self._interpreter.get_tensor(entry["index"])) for entry in self._sides[1]]
