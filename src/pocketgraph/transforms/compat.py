"""Whether rules do what the original tool did, to the letter, or what is right."""

from __future__ import annotations

import enum

from pocketgraph.errors import UsageError, did_you_mean


class Compat(enum.Enum):
    """How to treat what the original tool got wrong.

    A rule that makes a difference has a keyword argument ``compat: Compat = Compat.FIXED``, which the tool fills in; it
    is no parameter in transform strings. Where the original aborts or never ends, both do the right thing.

    Attributes:
        ORIGINAL: what TensorFlow 1.15.5's tool makes, to the letter, also in passing over mistakes in the call and in
            dropping the graph's versions.
        FIXED: the same, but the right thing where that aborts or damages the graph, and more than it could; each
            difference stands in the rule's description under "Differs".
    """

    ORIGINAL = "original"
    FIXED = "fixed"

    @property
    def original(self) -> bool:
        """Whether to follow the original to the letter."""
        return self is Compat.ORIGINAL

    @staticmethod
    def named(name: str | Compat) -> Compat:
        """The member of this name.

        Raises:
            UsageError: there is none.
        """
        if isinstance(name, Compat):
            return name
        known = [member.value for member in Compat]
        if name not in known:
            hint = did_you_mean(name, known) or "it is 'original' or 'fixed'"
            raise UsageError(f"unknown compatibility '{name}'", where="compat", hint=hint)
        return Compat(name)
