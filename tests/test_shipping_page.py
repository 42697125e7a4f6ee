"""The code of docs/shipping.md is code: compiled where a compiler is at hand, else parsed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from support import ROOT

PAGE = (ROOT / "docs" / "shipping.md").read_text("utf-8")
LITERT_IN_C = """
#include <stddef.h>
typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteTensor TfLiteTensor;
typedef enum { kTfLiteOk, kTfLiteError } TfLiteStatus;
TfLiteModel *TfLiteModelCreateFromFile(const char *path);
TfLiteInterpreterOptions *TfLiteInterpreterOptionsCreate(void);
TfLiteInterpreter *TfLiteInterpreterCreate(const TfLiteModel *model, const TfLiteInterpreterOptions *options);
TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter *interpreter);
TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter *interpreter);
TfLiteTensor *TfLiteInterpreterGetInputTensor(const TfLiteInterpreter *interpreter, int index);
const TfLiteTensor *TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter *interpreter, int index);
TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor *tensor, const void *data, size_t bytes);
TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor *tensor, void *data, size_t bytes);
static float pixels[3], scores[3];
int main(void) {
"""
"""What c_api.h of LiteRT declares of what the page calls."""


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for spoken, text in found if spoken == language]


@pytest.mark.parametrize(("language", "least"), [("kotlin", 3), ("swift", 2), ("javascript", 1), ("c", 1)])
def test_code_parses(language: str, least: int) -> None:
    tree_sitter = pytest.importorskip("tree_sitter", reason="tree-sitter is not installed")
    module = pytest.importorskip(f"tree_sitter_{language}", reason=f"tree-sitter-{language} is not installed")
    parser = tree_sitter.Parser(tree_sitter.Language(module.language()))
    found = blocks(language)
    assert len(found) >= least
    for block in found:
        text = f"void f(void) {{\n{block}}}" if language == "c" else block
        assert not parser.parse(text.encode()).root_node.has_error, block
    assert parser.parse(b"val = = (").root_node.has_error


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_compiles() -> None:
    for block in blocks("c"):
        subprocess.run(
            ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"],
            input=f"{LITERT_IN_C}{block}return 0;\n}}\n", text=True, check=True, timeout=300,
        )  # fmt: skip
