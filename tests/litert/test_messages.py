"""What comes through the pipe to a worker is a message or the end of it, whoever wrote it."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from pocketgraph.litert.untrusted.messages import receive, send


def encoded(head: bytes, rest: bytes = b"") -> io.BytesIO:
    return io.BytesIO(len(head).to_bytes(8, "little") + head + rest)


def test_what_was_sent_is_received() -> None:
    pipe = io.BytesIO()
    texts = np.empty(2, object)
    texts[:] = [b"a", b"\xff\0"]
    send(pipe, {"number": 1}, [np.arange(6, dtype=np.int16).reshape(2, 3), texts])
    pipe.seek(0)
    about, (numbers, found) = receive(pipe)
    assert about == {"number": 1}
    assert numbers.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found.tolist() == [b"a", b"\xff\0"]


@pytest.mark.parametrize("dtype", [",", "(", "f4,", "|O", "|V8", "M8[s", "", 3, None, ["x"]])
def test_types_of_no_array_end_it(dtype: object) -> None:
    head = json.dumps({"arrays": [{"dtype": dtype, "shape": [1]}]}).encode()
    with pytest.raises(EOFError, match="no message"):
        receive(encoded(head, bytes(64)))


@pytest.mark.parametrize("head", [b"", b"{", b"[]", b"1", b'{"arrays": 1}', b"[" * 100_000, b'{"arrays": [[]]}'])
def test_other_texts_end_it(head: bytes) -> None:
    with pytest.raises(EOFError):
        receive(encoded(head))
