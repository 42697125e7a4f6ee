"""Any transform string, in either way to run it, gives a graph or one of our errors in one line."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import tool, transform

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[1,4,4,2])
    n = Placeholder(dtype=int32)
    w = Const(float[1,1,2,2] 0.5)
    bad = Const(float [1.0, nan, inf, -1.0])
    conv = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    scale = Const(float [2.0, 3.0])
    scaled = Mul(conv, scale, ^n, T=float)
    low = Const(float -1.0)
    fake = FakeQuantWithMinMaxVars(scaled, low, low)
    range = RequantizationRange(fake, low, low, Tinput=qint32)
    table = Const(float [[0.0], [1.0]])
    read = Identity(table, T=float)
    y = Gather(read, n, Tparams=float, Tindices=int32)
    z = Add(fake, y, T=float)
    empty = Const(float[0] 0.0)
""").replace(inputs=["x", "n"], outputs=["z"])

values = st.sampled_from([
    "0", "1", "-1", "2", "256", "1e9", "nan", "inf", "-inf", "true", "false", "Relu", "x", "z", "w", "*", "", "float",
    "1,2", "?,-1", "quint8", "9223372036854775807", "-9223372036854775808", "no/such/file", "/", "a b", "Conv2D|Mul",
    "T", "^x", "x:0", "\x00", "é", "scale", "variant", "0x10", "1_000",
])  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> str:
    """A rule with some of its parameters, perhaps twice, and values that may not fit."""
    name = draw(st.sampled_from([name for name in tool.built_in() if not name.startswith(("mobile", "smallest"))]))
    known = [*tool.find(name).parameters, "ignore_errors", "unknown"]
    given_names = draw(st.lists(st.sampled_from(known), max_size=4))
    parameters = ", ".join(f'{key}="{draw(values)}"' for key in given_names)
    return f"{name}({parameters})"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@given(st.lists(calls(), min_size=1, max_size=4), st.sampled_from(["original", "fixed"]))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_only_our_errors_in_one_line(listed: list[str], compat: str) -> None:
    message = ""
    try:
        assert not transform(GRAPH, listed, compat=compat).dangling()
    except PocketgraphError as error:
        message = str(error)
    assert "\n" not in message
