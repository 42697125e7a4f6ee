"""The code of docs/patterns.md runs, from its first line to its last."""

import re

from support import ROOT


def test_the_code_of_the_page_runs() -> None:
    text = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == len(re.findall(r"^## ", text, re.MULTILINE))
    exec(compile("\n".join(blocks), "docs/patterns.md", "exec"), {})
