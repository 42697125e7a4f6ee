"""A box of a picture that opens: a name scope, or a group of what repeats, with items and the arrows between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pocketgraph.inspect.view.layered_layout import GraphLayout

NODE, SCOPE, ENTRY, EXIT = range(4)
"""What an item of a scope is; of an entry or exit arrows come from or go to outside."""


@dataclass
class ScopeItem:
    """Something in a scope: its kind and the number of the node or scope that it is."""

    kind: int
    number: int = -1


@dataclass
class Link:
    """An arrow between two nodes, or two items of a scope, by their numbers; ``count`` tensors take it,
    and ``label`` is the type and shape that it carries."""

    source: int
    target: int
    control: bool
    label: str
    count: int = 1


@dataclass
class Scope:
    """A name scope, or a group of what repeats.

    Attributes:
        path: its whole name.
        label: what of it is shown on its box.
        parent: the number of the scope around it; -1 for the outermost.
        items, links: what is in it.
        nodes: how many nodes are in it, those in its inner scopes too.
        copies: how many alike ones stand in it one after the other; 1 for a name scope.
        is_open: whether its inside is in the picture.
        layout: where the items are.
    """

    path: str
    label: str
    parent: int
    items: list[ScopeItem] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    nodes: int = 0
    copies: int = 1
    is_open: bool = True
    layout: GraphLayout | None = None
