"""LiteRT for the stand-in of its Java class: reads commands from standard input, answers with what tensors are.

Numbers are big-endian, texts and arrays have their length in four bytes in front. An answer begins with 0, or with 1
and the reason.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, BinaryIO

import numpy as np
from ai_edge_litert.interpreter import Interpreter

TYPES = ["float32", "int32", "uint8", "int64", "str", "bool", "int16", "int8"]
"""In the order of org.tensorflow.lite.DataType."""


def number(read: BinaryIO) -> int:
    """The next number; the end of the stream ends the process."""
    found = read.read(4)
    if len(found) < 4:
        sys.exit(0)
    value: int = struct.unpack(">i", found)[0]
    return value


def numbers(values: Any) -> bytes:
    return struct.pack(f">{len(values) + 1}i", len(values), *map(int, values))


def text(words: str) -> bytes:
    return struct.pack(">i", len(words.encode())) + words.encode()


def tensor(detail: dict[str, Any]) -> bytes:
    scale, zero = detail["quantization"]
    kind = TYPES.index(np.dtype(detail["dtype"]).name)
    shapes = numbers(detail["shape"]) + numbers(detail["shape_signature"])
    return text(detail["name"]) + struct.pack(">iifi", detail["index"], kind, scale, zero) + shapes


def tensors(run: Interpreter) -> bytes:
    """All inputs and outputs, and where those of each signature are."""
    made = b""
    for details in (run.get_input_details(), run.get_output_details()):
        made += struct.pack(">i", len(details)) + b"".join(map(tensor, details))
    signatures = run.get_signature_list()
    made += struct.pack(">i", len(signatures))
    for key in signatures:
        runner = run.get_signature_runner(key)
        made += text(key)
        for named in (runner.get_input_details(), runner.get_output_details()):
            made += struct.pack(">i", len(named))
            made += b"".join(text(name) + struct.pack(">i", detail["index"]) for name, detail in named.items())
    return made


def answered(run: Interpreter, command: int, read: BinaryIO) -> bytes:
    """What one command gives, in front of the tensors: 1 resizes, 2 allocates, 3 runs."""
    inputs, made = run.get_input_details(), b""
    if command == 1:
        place, count = number(read), number(read)
        run.resize_tensor_input(inputs[place]["index"], [number(read) for _ in range(count)])
    elif command == 2:
        run.allocate_tensors()
    else:
        given = [read.read(number(read)) for _ in inputs]
        for detail, array in zip(inputs, given, strict=True):
            run.set_tensor(detail["index"], np.frombuffer(array, detail["dtype"]).reshape(detail["shape"]))
        run.invoke()
        for detail in run.get_output_details():
            found = np.ascontiguousarray(run.get_tensor(detail["index"])).tobytes()
            made += struct.pack(">i", len(found)) + found
    return made


def main(read: BinaryIO, write: BinaryIO) -> None:
    run: Interpreter | None = None
    while True:
        command = number(read)
        try:
            if run is None:
                run = Interpreter(model_content=read.read(number(read)), num_threads=command)
                made = b""
            else:
                made = answered(run, command, read)
            answer = b"\0" + made + tensors(run)
        except (ValueError, RuntimeError) as error:
            answer = b"\1" + text(str(error))
        write.write(answer)
        write.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
