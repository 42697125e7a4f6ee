"""Convolutions by XNNPACK with weights that change: they are NumPy's, or are not computed there."""

from __future__ import annotations

import gc
import mmap
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.kernels.nn.convolution import convolve, convolve_depthwise
from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
from pocketgraph.kernels.windows import Window, window
from pocketgraph.litert.native import c_library, in_place_model
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.packing import changing_weights
from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

Array = np.ndarray[Any, Any]
PLAIN, DEPTHWISE = "Conv2D", "DepthwiseConv2dNative"


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def spans_of(padding: str, taps: int, *sizes: int, stride: int = 1, dilation: int = 1) -> list[Window]:
    return [window(size, taps, stride, padding, dilation) for size in sizes]


def asked_for(
    op: str, weights: Array, bias: Array | None, spans: Sequence[Window], images: tuple[int, ...]
) -> tuple[ConvolutionKind, Array, Array | None]:
    return ConvolutionKind(op, images, weights.shape, tuple(spans), ""), weights, bias


def asked_before(found: ChangingConvolutions, *asked: Any) -> ChangingConvolutions:
    """Whose programs are opened when they are asked for the next time."""
    with found.given(*asked):
        return found


def computed(
    found: ChangingConvolutions,
    op: str,
    x: Array,
    weights: Array,
    bias: Array | None,
    spans: Sequence[Window],
    some: int,
) -> Array | None:
    outputs = weights.shape[2] if op == DEPTHWISE else weights.shape[3]
    result = np.empty((len(x), *(span.output for span in spans), outputs), np.float32)
    asked = asked_for(op, weights, bias, spans, (some, *x.shape[1:]))
    with asked_before(found, *asked).given(*asked) as run:
        if run is None:
            return None
        for first in range(0, len(x), some):
            run(x[first : first + some], result[first : first + some])
    return result


@pytest.mark.parametrize(
    ("op", "shape", "padding", "more"),
    [
        (PLAIN, (1, 1, 24, 40), "SAME", {}),
        (PLAIN, (3, 3, 5, 7), "SAME", {}),
        (PLAIN, (2, 2, 16, 16), "VALID", {"stride": 2}),
        (PLAIN, (3, 3, 4, 33), "SAME", {"dilation": 2}),
        (DEPTHWISE, (3, 3, 24, 1), "SAME", {}),
        (DEPTHWISE, (5, 5, 7, 1), "SAME", {"stride": 2}),
        (DEPTHWISE, (2, 2, 33, 1), "VALID", {}),
        (DEPTHWISE, (5, 5, 20, 1), "VALID", {}),
    ],
)
def test_each_run_has_the_weights_it_is_given(op: str, shape: tuple[int, ...], padding: str, more: Any) -> None:
    x, spans = drawn(5, 9, 8, shape[2]), spans_of(padding, shape[0], 9, 8, **more)
    plainly = convolve_depthwise if op == DEPTHWISE else convolve
    found = ChangingConvolutions(threads=1)
    for seed in (1, 2):
        weights = drawn(*shape, seed=seed)
        bias = drawn(shape[2] if op == DEPTHWISE else shape[3], seed=seed + 2)
        for added in (bias, None):
            made = computed(found, op, x, weights, added, spans, 2)  # the last image is alone
            assert made is not None
            expected = plainly(x.astype(np.float64), weights.astype(np.float64), spans) + (
                0 if added is None else added
            )
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("taps", [(2, 3), (2, 4), (4, 5)])
@pytest.mark.parametrize("stride", [2, 3])
def test_windows_smaller_than_a_kernel_are_left(taps: tuple[int, int], stride: int) -> None:
    """XNNPACK's kernel of more elements reads other pixels, too: a NaN there, times zero, would reach the result."""
    spans = [window(11, each, stride, "VALID") for each in taps]
    asked = asked_for(DEPTHWISE, drawn(*taps, 16, 1), None, spans, (1, 11, 11, 16))
    with asked_before(ChangingConvolutions(threads=1), *asked).given(*asked) as run:
        assert run is None


def test_weights_need_not_be_in_one_piece() -> None:
    x, weights, spans = drawn(2, 6, 6, 8), drawn(3, 3, 16, 8), spans_of("SAME", 3, 6, 6)
    turned = weights[::-1, ::-1].transpose(0, 1, 3, 2)
    made = computed(ChangingConvolutions(threads=1), PLAIN, x, turned, None, spans, 2)
    np.testing.assert_allclose(made, convolve(x, turned, spans), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("op", "shape", "spans"),
    [
        (DEPTHWISE, (3, 3, 4, 2), spans_of("SAME", 3, 6, 6)),
        (DEPTHWISE, (7, 7, 4, 1), spans_of("SAME", 7, 6, 6)),
        (PLAIN, (0, 0, 4, 4), [Window(1, 1, 1, 0, 0, 6)] * 2),
    ],
    ids=["several for each channel", "a large window", "nothing"],
)
def test_what_is_not_for_xnnpack_is_left(op: str, shape: tuple[int, ...], spans: list[Window]) -> None:
    asked = asked_for(op, drawn(*shape), None, spans, (2, 6, 6, 4))
    with asked_before(ChangingConvolutions(threads=1), *asked).given(*asked) as run:
        assert run is None


@pytest.mark.parametrize(
    ("op", "shape", "spans"),
    [
        (PLAIN, (3, 3, 4, 5), [Window(3, 1, 1, 2, 2, 8)] * 2),
        (PLAIN, (3, 2, 4, 5), [Window(3, 1, 1, 2, 0, 6), Window(2, 1, 1, 0, 1, 6)]),
        (PLAIN, (3, 3, 4, 5), [Window(3, 2, 1, 1, 3, 4), Window(3, 1, 2, 0, 3, 5)]),
        (PLAIN, (9, 9, 4, 5), [Window(9, 1, 1, 8, 8, 14)] * 2),
        (DEPTHWISE, (3, 3, 4, 1), [Window(3, 1, 1, 2, 2, 8)] * 2),
    ],
    ids=["a gradient of VALID", "one side", "strides and gaps", "larger than the images", "depthwise"],
)
def test_borders_without_a_name_are_put_around_the_images(op: str, shape: tuple[int, ...], spans: list[Window]) -> None:
    plainly = convolve_depthwise if op == DEPTHWISE else convolve
    found, x = ChangingConvolutions(threads=1), drawn(5, 6, 6, 4)
    for seed in (1, 2):
        weights = drawn(*shape, seed=seed)
        for images in (x, x[::-1]):  # the last image is alone
            made = computed(found, op, np.ascontiguousarray(images), weights, None, spans, 2)
            assert made is not None
            expected = plainly(images.astype(np.float64), weights.astype(np.float64), spans)
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=2e-5)


def not_known() -> Any:
    raise OSError("the calls of this version are not known")


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (c_library, "library", not_known),
        (changing_weights, "_sources", lambda packed, *_: np.arange(len(packed))),
    ],
    ids=["another LiteRT", "another order"],
)
def test_what_is_not_known_is_left(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Any) -> None:
    monkeypatch.setattr(owner, name, other)
    asked = asked_for(PLAIN, drawn(1, 1, 24, 40), None, spans_of("SAME", 1, 6, 6), (2, 6, 6, 24))
    with asked_before(ChangingConvolutions(threads=1), *asked).given(*asked) as run:
        assert run is None


def test_few_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a step has more convolutions than there may be programs, some stay in NumPy: none is opened anew."""
    monkeypatch.setattr(changing_weights, "MOST_PROGRAMS", 2)
    monkeypatch.setattr(changing_weights, "LONG_AGO", 12)
    opened, opening = [], changing_weights._opened
    monkeypatch.setattr(
        changing_weights, "_opened", lambda *asked: opened.append(asked[0].images[0]) or opening(*asked)
    )
    found, weights, spans = ChangingConvolutions(threads=1), drawn(1, 1, 4, 8), spans_of("SAME", 1, 5, 5)
    for count in (4, 3, 2, 1, 4, 3, 2, 1, 4):
        x = drawn(count, 5, 5, 4)
        made = np.empty((count, 5, 5, 8), np.float32)
        with found.given(*asked_for(PLAIN, weights, None, spans, x.shape)) as run:
            if run is not None:
                run(x, made)
                np.testing.assert_allclose(made, x @ weights[0, 0], rtol=1e-5, atol=2e-5)
        assert len(found._programs) <= 2
    assert opened == [4, 3]
    for _ in range(12):  # the others have been asked for long ago
        asked_before(found, *asked_for(PLAIN, weights, None, spans, (2, 5, 5, 4)))
    assert opened == [4, 3, 2]
    assert [kind.images[0] for kind in found._asked] == [2]
    del found
    gc.collect()


def test_no_files_are_made(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """A process that is killed leaves nothing, and a full disk does not matter."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    x, weights = drawn(2, 5, 5, 4), drawn(1, 1, 4, 8)
    made = computed(ChangingConvolutions(threads=1), PLAIN, x, weights, None, spans_of("SAME", 1, 5, 5), 2)
    np.testing.assert_allclose(made, x @ weights[0, 0], rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("start", "is_lent"), [(0, False), (64, True)])
def test_what_ends_with_a_page_is_copied(monkeypatch: pytest.MonkeyPatch, start: int, is_lent: bool) -> None:
    """Some processors' kernels read on behind the last image, where nothing need be."""
    lent, lend = [], InPlaceModel._lent

    def noted(self: InPlaceModel, stack: Any, kind: Any, array: Array) -> Any:
        lent.append(array)
        return lend(self, stack, kind, array)

    x = np.frombuffer(mmap.mmap(-1, 2 * mmap.PAGESIZE), np.uint8)[start : start + mmap.PAGESIZE].view(np.float32)
    x = x.reshape(1, 8, 8, -1)
    x[...] = drawn(*x.shape)
    weights = drawn(1, 1, x.shape[3], 8)
    found, spans = ChangingConvolutions(threads=1), spans_of("SAME", 1, 8, 8)
    asked_before(found, *asked_for(PLAIN, weights, None, spans, x.shape))
    monkeypatch.setattr(InPlaceModel, "_lent", noted)
    made = computed(found, PLAIN, x, weights, None, spans, 1)
    np.testing.assert_allclose(made, x @ weights[0, 0], rtol=1e-5, atol=1e-4)
    assert any(np.shares_memory(each, x) for each in lent) == is_lent


def test_calls_with_arrays_in_the_same_place_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT is told once where arrays lie; of many places the latest are known."""
    lent, lend = [], InPlaceModel._lent

    def noted(self: InPlaceModel, stack: Any, kind: Any, array: Array) -> Any:
        lent.append(array)
        return lend(self, stack, kind, array)

    weights, spans = drawn(1, 1, 4, 8), spans_of("SAME", 1, 8, 8)
    found = ChangingConvolutions(threads=1)
    asked = asked_for(PLAIN, weights, None, spans, (1, 8, 8, 4))
    asked_before(found, *asked)
    monkeypatch.setattr(InPlaceModel, "_lent", noted)
    monkeypatch.setattr(in_place_model, "MOST_CALLS", 2)
    pages = [np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.float32) for _ in range(3)]  # no input ends with one
    rooms = [(page[:256].reshape(1, 8, 8, 4), page[256:768].reshape(1, 8, 8, 8)) for page in pages]
    told = []
    with found.given(*asked) as convolve:
        assert convolve is not None
        before = len(lent)
        for place in (0, 0, 1, 0, 2, 0, 1):
            x, result = rooms[place]
            x[...] = drawn(*x.shape)
            convolve(x, result)
            np.testing.assert_allclose(result, x @ weights[0, 0], rtol=1e-5, atol=1e-5)
            told.append((len(lent) - before) // 2)
    assert told == [1, 1, 2, 2, 3, 3, 4]
    (program,) = found._programs.values()
    assert program is not None
    program.model.close()
    assert not program.model._calls


def test_numpy_goes_on_where_litert_fails() -> None:
    x, weights, spans = drawn(2, 5, 5, 4), drawn(1, 1, 4, 8), spans_of("SAME", 1, 5, 5)
    found = ChangingConvolutions(threads=1)
    assert computed(found, PLAIN, x, weights, None, spans, 2) is not None
    (program,) = found._programs.values()
    assert program is not None
    program.model.close()
    made = computed(found, PLAIN, x, weights, None, spans, 2)
    np.testing.assert_allclose(made, x @ weights[0, 0], rtol=1e-5, atol=2e-5)


def test_sizes_that_come_once_are_not_worth_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing_weights, "_opened", lambda *_: pytest.fail("a program is opened"))
    found = ChangingConvolutions(threads=1)
    for size in range(4, 9):
        asked = asked_for(PLAIN, drawn(1, 1, 4, 8), None, spans_of("SAME", 1, size, size), (2, size, size, 4))
        with found.given(*asked) as run:
            assert run is None


def test_threads_do_not_take_each_others_weights() -> None:
    found, spans, x = ChangingConvolutions(threads=1), spans_of("SAME", 1, 8, 8), drawn(4, 8, 8, 16)
    wrong: list[int] = []

    def repeated(seed: int) -> None:
        weights = drawn(1, 1, 16, 16, seed=seed)
        for _ in range(50):
            made = computed(found, PLAIN, x, weights, None, spans, 3)
            if made is None or not np.allclose(made, x @ weights[0, 0], rtol=1e-4, atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=repeated, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_opens_programs_of_its_own(threads: int) -> None:
    found, spans, x = ChangingConvolutions(threads=threads), spans_of("SAME", 1, 8, 8), drawn(4, 8, 8, 16)
    weights = drawn(1, 1, 16, 16)
    assert computed(found, PLAIN, x, weights, None, spans, 4) is not None
    found._lock.acquire()  # another thread has it when the process is forked
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 60)
            made = computed(found, PLAIN, x, 2 * weights, None, spans, 4)
            code = 0 if made is not None and np.allclose(made, 2 * (x @ weights[0, 0]), rtol=1e-4, atol=1e-4) else 2
        finally:
            os._exit(code)
    found._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    made = computed(found, PLAIN, x, weights, None, spans, 4)
    np.testing.assert_allclose(made, x @ weights[0, 0], rtol=1e-5, atol=2e-5)


def test_a_process_that_ends_says_nothing() -> None:
    text = """
        import numpy as np
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
        from pocketgraph.kernels.windows import window
        from pocketgraph.litert.packing.changing_weights import ChangingConvolutions
        found = ChangingConvolutions(threads=2)
        x, y = np.ones((2, 4, 4, 8), np.float32), np.empty((2, 4, 4, 8), np.float32)
        weights, spans = np.ones((1, 1, 8, 8), np.float32), [window(4, 1, 1, "SAME")] * 2
        kind = ConvolutionKind("Conv2D", x.shape, weights.shape, tuple(spans), "")
        for _ in range(2):
            with found.given(kind, weights, None) as run:
                pass
        with found.given(kind, weights, None) as run:
            run(x, y)
        print(y.sum())
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2048.0\n", "")
