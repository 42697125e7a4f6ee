"""A table with a row an op, whose rows register themselves when the module that holds them is imported.

Which module that is says one index of all tables, ``op_index.txt``, which ``tools/build_op_index.py`` writes from the
rows: so that a session imports what its ops need and nothing else, and nobody keeps a list of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, ParamSpec, TypeVar

from pocketgraph.package_data import section_beside

Row = TypeVar("Row")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])

INDEX = "op_index.txt"
"""A part a table, ``[NAME]`` above it; a line a module: its name from the table's package on, and the ops it enters."""


class OpTable(Generic[Row]):
    """Rows by op: those of the package, found by the index, and those that a user gave.

    Args:
        what: what a row is, as errors call it.
        package: the package whose modules hold the rows.
        index: the name of the table in the index.

    Attributes:
        given: the ops whose rows a user gave; another set after each change.
    """

    def __init__(self, what: str, package: str, index: str) -> None:
        self._what, self._package, self._index = what, package, index
        self._rows: dict[str, Row] = {}
        self._given: dict[str, Row] = {}
        self.given: frozenset[str] = frozenset()
        self._homes: dict[str, str] | None = None

    def add(self, op: str, row: Row) -> None:
        """Adds a row of the package.

        Raises:
            ValueError: the op has one.
        """
        if op in self._rows:
            raise ValueError(f"{op} has two {self._what}s")
        self._rows[op] = row

    def enters(self: OpTable[Callable[P, R]], *ops: str) -> Callable[[Callable[P, S]], Callable[P, S]]:
        """Enters the decorated function, whose parameters are those of the table's rows, as the row of these ops."""

        def enter(function: Callable[P, S]) -> Callable[P, S]:
            row: Any = function
            for op in ops:
                self.add(op, row)
            return function

        return enter

    def taking(
        self: OpTable[Callable[[Any, Any], Any]], read: Callable[[Any, Any, int], Iterable[Any]], *ops: str
    ) -> Callable[[F], F]:
        """Enters the decorated function, which takes what a row takes and then operands, as the row of these ops.

        Args:
            read: given what a row is given, and how many operands the function takes: these operands.
            ops: the ops.
        """

        def enter(function: F) -> F:
            count = function.__code__.co_argcount - 2
            row = (lambda to, op: function(to, op, *read(to, op, count))) if count else function
            for op in ops:
                self.add(op, row)
            return function

        return enter

    def give(self, op: str, row: Row | None) -> None:
        """Sets the row that a user gives for an op of his own; None takes it away."""
        if row is None:
            self._given.pop(op, None)
        else:
            self._given[op] = row
        self.given = frozenset(self._given)

    def row(self, op: str) -> Row | None:
        """An op's row, whose module is imported for it; None when there is none."""
        found = self._rows.get(op)
        if found is None:
            found = self._given.get(op)
            if found is None and op in (homes := self._index_of_ops()):
                import_module(f"{self._package}.{homes[op]}")
                found = self._rows.get(op)
        return found

    def __contains__(self, op: object) -> bool:
        """Whether the op has a row; nothing is imported for it but the index."""
        return op in self._rows or op in self._given or op in self._index_of_ops()

    def __iter__(self) -> Iterator[str]:
        """The ops that have a row."""
        return iter(dict.fromkeys((*self._index_of_ops(), *self._given)))

    def homes(self, ops: Iterable[str]) -> list[str]:
        """The modules that hold the rows of these ops, for ``load``; ops without one in the package are passed over."""
        index = self._index_of_ops()
        return sorted({index[op] for op in ops if op in index})

    def load(self, modules: Iterable[str]) -> None:
        """Imports modules that ``homes`` gave, maybe that of another version; what is not there is passed over."""
        for name in modules:
            module = f"{self._package}.{name}"
            try:
                import_module(module)
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith(self._package):
                    raise

    def _index_of_ops(self) -> Mapping[str, str]:
        """The module, from the package on, of each op."""
        if self._homes is None:
            self._homes = indexed(self._index)
        return self._homes


def indexed(table: str) -> dict[str, str]:
    """The module of each op of a table, as the index has it."""
    lines = section_beside(__file__, INDEX, table)
    return {op: module for module, *ops in map(str.split, lines) for op in ops}
