"""A plan for a request: that of an earlier process where there is one, else a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pocketgraph.graph import Graph
from pocketgraph.graph.model_file import is_litert_file, is_model_file
from pocketgraph.runtime.planning import kept_plans
from pocketgraph.runtime.planning.prepared import Prepared, Request

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.needed import Item


def planned(request: Request, graph: Callable[[], Graph], items: dict[str, Item] | None = None) -> Prepared:
    """What runs a request.

    Args:
        request: what is to be run; its graph is not looked at.
        graph: gives the graph, which only a new plan needs.
        items: the graph's needed nodes, when the caller knows them.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
        RunError: the graph cannot be run as asked.
    """
    found = kept_plans.find(request)
    if found is not None:
        return found
    whole = graph()
    if is_model_file(whole) and not is_litert_file(whole):
        from pocketgraph.runtime.planning.onnx_file_plan import plan_of_onnx_file

        return plan_of_onnx_file(request, whole)
    if is_model_file(whole):
        from pocketgraph.runtime.planning.model_file_plan import plan_of_model_file

        return plan_of_model_file(request, whole)
    from pocketgraph.runtime.planning.plan import prepare  # takes as long to import as all that a warm start needs

    return prepare(request._replace(graph=whole), items)
