"""The verdicts of the reports: what a person is told to do follows from the figures; notebooks show a bounded piece."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from browsers import browser
from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.benchmark_result import Benchmark
from pocketgraph.pages.document import report as page_of
from pocketgraph.pages.parts import Column, Row, number, table, words
from pocketgraph.quantization.evaluation.evaluation_page import finding
from pocketgraph.quantization.evaluation.model_verdict import ModelVerdict
from pocketgraph.quantization.report.html_report import verdict
from pocketgraph.quantization.report.layer_report import LayerReport, QuantizationReport
from pocketgraph.quantization.report.size_and_latency import SizeAndLatency
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison

TEXT = """
    x = Placeholder(dtype=float, shape=[1, 4])
    w = Const(float [[0.5, 1.0, -0.5], [0.25, 0.5, 1.0], [1.0, 0.5, 0.25], [-1.0, 0.5, 0.75]])
    m = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    y = Softmax(m, T=float)
"""


def compared(noise: float, count: int = 200) -> Comparison:
    """Answers of ten classes beside ones that are off by some noise."""
    rng, found = np.random.default_rng(0), Comparison()
    for _ in range(count):
        right = rng.normal(0, 3, (1, 10))
        found.add(right, right + rng.normal(0, noise, (1, 10)))
    return found


def report(beside: Comparison, size: int = 300, notes: tuple[str, ...] = ()) -> QuantizationReport:
    layer = LayerReport("a/<b>", "CONV_2D", False, -1.0, 1.0, activation_noise=12.0)
    return QuantizationReport([layer], beside, list(notes), beside.count, 1000, size, beside, True)


@pytest.mark.parametrize(("noise", "kind"), [(0.01, "good"), (0.25, "fair"), (3.0, "bad")])
def test_the_verdict_on_a_quantized_model(noise: float, kind: str) -> None:
    beside = compared(noise)
    found = verdict(report(beside))
    assert (found.kind, beside.quality) == (kind, kind)
    assert beside.words() in found.reasons[0]
    assert any("a/<b>" in reason for reason in found.reasons) == (kind != "good"), "who hurts is named"


def test_a_model_that_is_larger_does_not_ship() -> None:
    speed = SizeAndLatency(1000, 1200, 0.001, 0.001, 5, 40, 1)
    found = verdict(report(compared(0.01), size=1200), speed)
    assert found.kind == "bad"
    assert any("larger than the float one" in reason for reason in found.reasons)
    small = verdict(report(compared(0.01)), SizeAndLatency(1000, 300, 0.001, 0.002, 5, 40, 1))
    assert small.kind == "bad"
    assert any("slower than the float model, for 300 bytes instead of 1,000;" in reason for reason in small.reasons)
    slow = SizeAndLatency(1_000_000, 300_000, 0.001, 0.002, 5, 40, 1)
    assert verdict(report(compared(0.01)), slow).kind == "fair"
    reasons = verdict(report(compared(0.01)), slow).reasons
    assert any("2 ms, 1 ms in float" in reason for reason in reasons)
    assert not any("bytes instead" in reason for reason in reasons)


@pytest.mark.parametrize(("count", "said"), [(9, False), (10, True)])
def test_what_other_samples_may_give_is_told_once(count: int, said: bool) -> None:
    found = verdict(report(compared(0.01, count)))
    assert any("the same best class may be that of" in reason for reason in found.reasons) == said
    assert ("of others" in found.reasons[0]) != said


def test_without_samples_nothing_is_promised() -> None:
    found = verdict(QuantizationReport([], Comparison(), [], 0, 1000, 300))
    assert found.kind == ""
    assert "Judge it" in found.words
    assert verdict(report(compared(0.01), notes=("warning: few",))).kind == "fair"


def test_the_verdict_on_evaluated_models() -> None:
    def model(path: str, size: int, right: int, noise: float | None) -> ModelVerdict:
        beside = None if noise is None else compared(noise)
        return ModelVerdict(path, size, beside, ClassAccuracy(200, right, right, 10), times=[0.002])

    exact, near, broken = (
        model("a.pb", 900, 180, None),
        model("b.tflite", 300, 179, 0.01),
        model("c.tflite", 100, 90, 3.0),
    )
    found = finding([exact, broken, near], 200)
    assert (found.kind, found.words) == ("good", "Ship b.tflite")
    assert "more than chance" in found.reasons[0]
    assert finding([exact, broken], 200).kind == "bad"
    assert "right in 90.0% of 200" in finding([exact], 200).words
    assert any("few" in reason for reason in finding([exact, near], 20).reasons)
    assert [finding([exact, near], samples).kind for samples in (9, 10)] == ["fair", "good"]
    assert finding([], 0).kind == ""


def test_steady_and_unsteady_times() -> None:
    steady = Benchmark(latencies=[1000] * 100)
    assert (steady.verdict().kind, "1 ms: 1,000 a second" in steady.verdict().words) == ("good", True)
    assert Benchmark(latencies=[1000] * 90 + [9000] * 10).verdict().kind == "fair"
    assert Benchmark().verdict().words == "Nothing was measured"


def test_reports_of_benchmark_and_evaluate(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(TEXT), tmp_path / "m.pb")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    page = tmp_path / "b.html"
    assert call("benchmark_model", tmp_path / "m.pb", "--max_num_runs=5", "--report", page) == 0
    assert "Benchmark of m.pb" in page.read_text("utf-8")
    assert "Nodes by time" in page.read_text("utf-8")
    assert call("evaluate", tmp_path / "m.pb", tmp_path / "m.pb", "--data", tmp_path / "data.npz", "--report",
                tmp_path / "e.html") == 0  # fmt: skip
    assert "Ship m.pb" in (tmp_path / "e.html").read_text("utf-8")
    for wrong, code in (("x.txt", 2), ("none/x.html", 1)):
        for command in (("benchmark_model", tmp_path / "m.pb", "--max_num_runs=1"),
                        ("evaluate", tmp_path / "m.pb", "--data", tmp_path / "data.npz")):  # fmt: skip
            assert call(*command, "--report", tmp_path / wrong) == code, (command, wrong)
            capsys.readouterr()


def test_notebooks_show_a_bounded_piece_of_anything() -> None:
    name = "<script>alert(1)</script>" + "n" * 5000
    many = [Node(f"{name}{i}", "Neg", ["x"], {"T": FLOAT}) for i in range(3000)]
    large = Graph([Node("x", "Placeholder", [], {"dtype": FLOAT}), *many])
    shown = [large, Graph(), pocketgraph.Session(large), pocketgraph.Session(Graph()), Benchmark(latencies=[5])]
    shown.append(pocketgraph.verify(parse(TEXT), parse(TEXT)))  # type: ignore[arg-type]
    for one in shown:
        html = one._repr_html_()  # type: ignore[attr-defined]
        assert "<script" not in html
        assert len(html) < 100_000
    assert "3,001" in large._repr_html_()
    assert "The models agree" in shown[-1]._repr_html_()  # type: ignore[attr-defined]
    assert "float" in pocketgraph.Session(parse(TEXT))._repr_html_()


def test_a_narrow_page_says_where_a_table_goes_on(tmp_path: pathlib.Path) -> None:
    """Names break behind ``/`` and ``_``; the edge fades until the last column is seen; nothing else is cut off."""
    columns = [Column("layer"), *(Column(f"column {at}") for at in range(8))]
    row = Row([words("MobilenetV1/Conv2d_1_depthwise/Relu6"), *(number(1000 + at) for at in range(8))])
    (tmp_path / "page.html").write_text(page_of("page", table(columns, [row])))
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 360, "height": 800})
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".wide.more")
        assert page.locator("td wbr").count() == 4
        assert page.locator("td").first.inner_text().replace("\n", "") == "MobilenetV1/Conv2d_1_depthwise/Relu6"
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.evaluate("document.querySelector('.wide').scrollLeft = 10000")
        page.wait_for_selector(".wide:not(.more)")
