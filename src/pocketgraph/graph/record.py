"""Values of a few named fields that do not change: frozen dataclasses whose classes are made without compiling code.

A dataclass takes half a millisecond to make, a named tuple a quarter, and whoever wants a first result quickly waits
for them. A value of a Record takes some microseconds to make: of what there are thousands, named tuples are better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**options: Any) -> Callable[[type], type]:
        """For type checkers only."""
        return lambda cls: cls


R = TypeVar("R", bound="Record")


@dataclass_transform(frozen_default=True)
class Record:
    """The base of such values. A subclass lists its fields with their types, and the defaults of the last ones.

    Two are equal when they are of one class and all their fields are.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        if len(values) == len(fields) and not named:  # as most are made
            self.__dict__.update(zip(fields, values, strict=True))
            return
        given = dict(zip(fields, values, strict=False))
        unknown = named.keys() - fields or named.keys() & given.keys()
        given.update(named)
        missing = [name for name in fields if name not in given and not hasattr(type(self), name)]
        if len(values) > len(fields) or unknown or missing:
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}")
        for name in fields:
            self.__dict__[name] = given[name] if name in given else getattr(type(self), name)

    def replace(self: R, **changes: Any) -> R:
        """A copy with other values of some fields.

        Args:
            changes: the new values by field.

        Returns:
            The copy; this one stays as it is.

        Raises:
            TypeError: there is no such field.
        """
        return type(self)(*{**self.__dict__, **changes}.values())  # in the fields' order, as __init__ puts them

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"
