"""Ops that touch files, run code or talk to other machines: refused unless the caller allows them.

Being allowed is not being able: of these ops only those with a kernel run, and the files they reach lie in the
session's ``files_dir`` (see files.py). No kernel here runs foreign code, so a PyFunc that is allowed is reported as
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Node
from pocketgraph.graph.op_traits import FEEDS_TRAINING, ops_with

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.compilation_units import Functions

FILES = ops_with("touches_files")
CODE = ops_with("runs_code")
NETWORK = ops_with("uses_network")
MOST_NAMED = 20
GROUPS = {"files": FILES, "code": CODE, "network": NETWORK}
RESTRICTED = FILES | CODE | NETWORK
DOES = {"files": "reads or writes files", "code": "runs code", "network": "talks to other machines"}


def allowed_ops(allow: Collection[str]) -> frozenset[str]:
    """The ops that ``allow`` names, one by one or by group (``files``, ``code``, ``network``).

    Raises:
        UsageError: a name is neither a group nor such an op, or this is no collection of names.
    """
    if not isinstance(allow, Collection):
        raise UsageError(f"allow is a list of names, not {allow!r}", hint="such as allow=['files']")
    found: set[str] = set()
    for name in (allow,) if isinstance(allow, str) else allow:
        if name in GROUPS:
            found |= GROUPS[name]
        elif any(name in group for group in GROUPS.values()):
            found.add(name)
        else:
            raise UsageError(
                f"nothing called '{name}' can be allowed", hint="allow 'files', 'code', 'network', or an op of those"
            )
    return frozenset(found)


def check_permissions(nodes: Iterable[Node], allowed: frozenset[str]) -> None:
    """Refuses nodes that touch files or run code and are not allowed.

    Raises:
        RunError: names such nodes, and says how many there are.
    """
    asking = [node for node in nodes if node.op in RESTRICTED]
    refused = [(node, group) for node in asking for group, ops in GROUPS.items() if node.op in ops - allowed]
    if refused:
        listed = ", ".join(f"'{node.name}' ({node.op})" for node, _ in refused[:MOST_NAMED])
        listed += f" and {len(refused) - MOST_NAMED} more" if len(refused) > MOST_NAMED else ""
        groups = sorted({group for _, group in refused})
        does = " and ".join(DOES[group] for group in groups)
        raise RunError(
            f"the graph {does}, which a model may not do unasked: {listed}",
            hint=f"if you trust the model, pass allow={groups} and files_dir=DIRECTORY to Session"
            if "files" in groups
            else f"feed what comes out of them instead (allow={groups} lets them pass, but nothing here runs them)",
        )


def check_may_run(nodes: Sequence[Node], library: Functions, allowed: frozenset[str]) -> None:
    """``check_permissions``, where a permission would help: training data come in through ops that nothing here runs.

    Raises:
        RunError: as there.
        MissingKernelError: nodes are refused in a pipeline of training data that has no kernels.
    """
    try:
        check_permissions(nodes, allowed)
    except RunError:
        from pocketgraph.runtime.missing_kernels import check_kernels  # a warm start imports no kernels

        if any(node.op in FEEDS_TRAINING - RESTRICTED for node in nodes):
            check_kernels(nodes, library)
        raise
