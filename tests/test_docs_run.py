"""Commands and Python of the documents run, page by page, and print what the pages show."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil

import pytest

from docs_site import folder, running
from docs_site.blocks import FENCE, PARSED, RUN, blocks, documents, normalized, same_output
from docs_site.reference import command_pages
from support import ROOT

PLAIN = {"text", "toml"}
MOST_NOT_RUN = 30
"""Blocks that need a camera, a phone's tools, an installation, TensorFlow or hours."""
BEFORE = {
    "commands/unseal.md": "pocketgraph seal small.pb small.sealed --new-key=model.key",
    "commands/nearest.md": "for name in flowers others; do pocketgraph embed mobilenet.pb photos/ -o $name.npz; done",
    "commands/view.md": "pocketgraph quantize frozen.pb --calibrate=photos/ -o small.tflite",
    "commands/fit.md": "pocketgraph benchmark_model frozen.pb --json > my_board.json",
    "commands/label_text.md": "pocketgraph ship reviews.pb --data=reviews.csv -o out/",
    "commands/print_required_ops.md": "pocketgraph export frozen.pb -o model.onnx",
}
"""Commands that make what the help of another command begins with."""
NEEDS = {
    "commands/graph_to_dot.md": ("dot",),
    "docs/c.md": ("cc", "make"),
    "docs/shipping.md": ("cc", "make", "onnx", "onnxruntime"),
    **dict.fromkeys(("docs/coming-from.md", "docs/faq.md", "commands/print_required_ops.md"), ("onnx", "onnxruntime")),
    **dict.fromkeys(("docs/protected_files.md", "commands/seal.md", "commands/unseal.md"), ("cryptography",)),
}
"""Programs and packages without which the blocks of a page do not run."""
COMMANDS = {f"commands/{name}": text for name, text in command_pages().items()}


def text_of(page: str) -> str:
    return COMMANDS[page] if page in COMMANDS else (ROOT / page).read_text("utf-8")


def pages_that_run() -> list[str]:
    return [page for page in [*documents(), *COMMANDS] if any(block.runs for block in blocks(text_of(page)))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return folder.make(tmp_path_factory.mktemp("docs"))


@pytest.mark.parametrize("page", pages_that_run())
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    page: str, made: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for needed in NEEDS.get(page, ()):
        if shutil.which(needed) is None and importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    place = folder.copied(made, tmp_path)
    if page in BEFORE:
        running.run_page(f"```sh\n{BEFORE[page]}\n```\n", place)
    running.check(running.run_page(text_of(page), place))


@pytest.mark.parametrize("page", documents())
def test_every_block_says_what_it_is(page: str) -> None:
    text = text_of(page)
    for block in blocks(text):
        assert block.language in RUN | PARSED | PLAIN, f"line {block.line}"
        first = block.text.split(maxsplit=1)[:1]
        assert block.language != "text" or first != ["pocketgraph"], f"line {block.line} shows a command as text"
    assert not re.search(r"\n\n    +(?![-*\d ])", FENCE.sub("", text)), "code without a fence"


def test_few_blocks_are_not_run() -> None:
    left = [
        f"{page}:{block.line}: {block.why_not}"
        for page in documents()
        for block in blocks(text_of(page))
        if block.why_not
    ]
    assert len(left) <= MOST_NOT_RUN, "\n".join(left)


def test_a_block_that_fails_or_prints_something_else_is_found(tmp_path: pathlib.Path) -> None:
    with pytest.raises(running.BlockError, match=r"line 2: .*leaves with 1"):
        running.run_page("```sh\npocketgraph identify nothing.pb\n```\n", tmp_path)
    with pytest.raises(running.BlockError, match=r"(?s)line 2: .*leaves with 3"):
        running.run_page("```sh\ntrue | (exit 3)\n```\n", tmp_path)
    with pytest.raises(running.BlockError, match="ZeroDivisionError"):
        running.run_page("```python\n1 / 0\n```\n", tmp_path)
    page = '```python\nprint("one 3.5 ms")\n```\n\n```output\ntwo 3.5 ms\n```\n'
    printed = running.run_page(page, tmp_path)
    with pytest.raises(running.BlockError, match="the page shows\ntwo"):
        running.check(printed)
    assert running.rewritten(page, printed) == page.replace("two", "one")
    running.check(running.run_page(page.replace("two 3.5", "one 400"), tmp_path))
    with pytest.raises(ValueError, match="line 1: this output follows no block"):
        blocks("```output\nx\n```\n")


def test_outputs_are_the_same_but_for_times_and_what_is_left_out() -> None:
    assert normalized("a   12.5 ms\n\n ─────\n") == ["a TIME", "---"]
    assert same_output("first\n…\nlast", "first\n1\n2\nlast\n")
    assert same_output("12 bytes, …, 3", "12 bytes, or more, 3")
    assert not same_output("first\nlast", "first\n1\nlast")
    assert not same_output("12 bytes", "13 bytes")
    assert same_output("3e-10 of the peak, 50.4 dB", "4e-10 of the peak, 57 dB")
