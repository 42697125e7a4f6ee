"""Real graphs in ONNX Runtime against TensorFlow's results; tools/onnx_goldens.py says why the others differ."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest

from support import ROOT, needs_shared, script

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")


def tool() -> ModuleType:
    return script(ROOT / "tools" / "onnx_goldens.py")


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("lifts", [False, True])
def test_nine_tenths_of_all_graphs_with_goldens_export_and_equal(lifts: bool) -> None:
    """With ``lifts`` the constants of the small graphs are inputs, so that converters and not folding are looked at."""
    goldens = tool()
    found = [goldens.verdict(case) for case in goldens.cases(lifts, 17)]
    counts = Counter(kind for _, kind, _ in found)
    assert len(found) > 600
    assert counts["equal"] >= 0.94 * len(found), [line for line in found if line[1] != "equal"]


@needs_shared
@pytest.mark.parametrize("opset", [13, 21, 23])
@pytest.mark.parametrize("name", ["mobilenet_v1_025_128", "kws_crnn_s", "har_developershutt", "tf2onnx_ae0"])
def test_models_in_other_opsets(name: str, opset: int) -> None:
    goldens = tool()
    (case,) = [case for case in goldens.cases(False, opset) if case.name == name]
    _, kind, why = goldens.verdict(case)
    if name == "kws_crnn_s" and opset < 17:
        assert (kind, "opset 17" in why) == ("refused", True)
    else:
        assert (kind, why) == ("equal", "")
