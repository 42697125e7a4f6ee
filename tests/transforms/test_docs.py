"""The pages under docs/transforms are those that the docstrings make."""

from __future__ import annotations

import re

from pocketgraph.transforms import tool
from support import ROOT, script


def test_the_pages_are_up_to_date() -> None:
    builder = script(ROOT / "tools" / "build_transform_docs.py")
    stale = builder.out_of_date(builder.build())
    assert not stale, "run python tools/build_transform_docs.py"


def test_each_parameter_has_a_meaning() -> None:
    from pocketgraph.inspect.rule_page import page_of

    for name in tool.built_in():
        page = page_of(tool.find(name))
        missing = [p.name for p in page.parameters if not page.meanings.get(p.name)]
        assert not missing, f"{name}: {missing}"


def test_the_guide_names_no_rule_that_is_not_there() -> None:
    text = (ROOT / "docs" / "transforms.md").read_text("utf-8")
    for block in re.findall(r"--transforms='([^']*)'", text):
        if "drop_scope" not in block:  # the rule that the guide writes itself
            tool.checked(tool.parse_transforms(block))
