"""Turns a training graph and its checkpoint into one graph with constants."""

from __future__ import annotations

from pocketgraph.freezing.constant_substitution import variables_to_constants
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.freezing.tool import Frozen, freeze, freeze_with_report

__all__ = ["Frozen", "extract_sub_graph", "freeze", "freeze_with_report", "variables_to_constants"]
