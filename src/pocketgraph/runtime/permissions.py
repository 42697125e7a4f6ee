"""Ops that touch files or run code: refused unless the caller allows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Node

FILES = frozenset((
    "ReadFile", "WriteFile", "MatchingFiles", "Save", "SaveV2", "SaveSlices", "Restore", "RestoreV2", "RestoreSlice",
    "MergeV2Checkpoints", "WholeFileReader", "WholeFileReaderV2",
    "TextLineReader", "TextLineReaderV2", "TFRecordReader", "TFRecordReaderV2", "FixedLengthRecordReader",
    "FixedLengthRecordReaderV2", "LMDBReader", "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset",
    "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "CreateSummaryFileWriter",
    "CacheDataset", "SnapshotDataset", "LoadDataset", "SaveDataset",
))  # fmt: skip
CODE = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc", "XlaLaunch", "RemoteCall", "RemoteFusedGraphExecute"))
GROUPS = {"files": FILES, "code": CODE}


def allowed_ops(allow: Collection[str]) -> frozenset[str]:
    """The ops that ``allow`` names, one by one or by group (``files``, ``code``).

    Raises:
        UsageError: a name is neither a group nor such an op.
    """
    found: set[str] = set()
    for name in (allow,) if isinstance(allow, str) else allow:
        if name in GROUPS:
            found |= GROUPS[name]
        elif any(name in group for group in GROUPS.values()):
            found.add(name)
        else:
            raise UsageError(f"nothing called '{name}' can be allowed", hint="allow 'files', 'code', or an op of those")
    return frozenset(found)


def check_permissions(nodes: Iterable[Node], allowed: frozenset[str]) -> None:
    """Refuses nodes that touch files or run code and are not allowed.

    Raises:
        RunError: names every such node.
    """
    refused = [(node, group) for node in nodes for group, ops in GROUPS.items() if node.op in ops - allowed]
    if refused:
        listed = ", ".join(f"'{node.name}' ({node.op})" for node, _ in refused)
        groups = sorted({group for _, group in refused})
        does = " and ".join({"files": "reads or writes files", "code": "runs code"}[group] for group in groups)
        raise RunError(
            f"the graph {does}, which a model may not do unasked: {listed}",
            hint=f"if you trust the model, pass allow={groups} to Session",
        )
