"""LazyDict: a dictionary that can make its values when they are first read.

Some indexes have an entry for each pod of a dump, for example 100,000 entries. A simulation reads
only a few hundred of them. At first, each entry is a *row*: a group of similar objects and a
position in the group.

    rows      {"a/web-1": (group, 0), "a/web-2": (group, 1)}
    d["a/web-2"]          make(group, 1) is called, and its result replaces the row
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, TypeVar, overload

Value = TypeVar("Value")
Other = TypeVar("Other")
Row = tuple[Any, int]

_get = dict.__getitem__
_find = dict.get
_set = dict.__setitem__
_pop = dict.pop


class LazyDict(dict[str, Value]):
    """A dictionary with str keys; each entry is a value, or a row that becomes a value when read.

    A value must not be a tuple, because rows are tuples. The methods from `load` to `row`
    distinguish rows from values. With the other methods, a LazyDict behaves like a dictionary that
    contains all values.
    """

    __slots__ = ("make",)

    def __init__(self, make: Callable[[Any, int], Value]) -> None:
        """Create an empty dictionary.

        `make(group, index)` returns the value for the row (group, index).
        """
        super().__init__()
        self.make = make

    # --- rows ------------------------------------------------------------------------------

    def load(self, rows: dict[str, Row]) -> None:
        """Add an entry for each of `rows`, a plain dictionary.

        The value of an entry is made from its row when the entry is first read.
        """
        entries: dict[str, Any] = rows
        dict.update(self, entries)

    def replace_row(self, key: str, row: Row, value: Value) -> None:
        """Replace the row of `key` with `value`; do nothing if the entry is no longer `row`."""
        if dict.get(self, key) is row:
            _set(self, key, value)

    def discard(self, key: str) -> None:
        """Remove the entry of `key`, if there is one, without making its value."""
        _pop(self, key, None)

    def made(self) -> Iterator[tuple[str, Value]]:
        """Yield (key, value) for each value that is made already."""
        for key, value in dict.items(self):
            if type(value) is not tuple:
                yield key, value

    def samples(self) -> Iterator[Value]:
        """Yield a value for each entry, in order.

        If the value of an entry is not made yet, the entry is a row (group, index). For such an
        entry, the value of the row (group, 0) is yielded instead. Use this method only to read
        fields that all values of a group share.
        """
        group: Any = None
        sample: Any = None
        for value in dict.values(self):
            found: Any = value
            if type(found) is tuple:
                if found[0] is not group:
                    group = found[0]
                    sample = self.make(group, 0)
                found = sample
            yield found

    def groups(self) -> Iterable[Any]:
        """Return the groups that have rows, each once, ordered by the group's first row."""
        groups = self._group_of_each_row()
        return dict(zip(map(id, groups), groups, strict=True)).values()

    def group_sizes(self) -> Counter[int]:
        """Count the rows (group, index) of each group; the keys of the result are `id(group)`."""
        return Counter(map(id, self._group_of_each_row()))

    def _group_of_each_row(self) -> Sequence[Any]:
        entries: Iterable[Any] = dict.values(self)
        return [entry[0] for entry in entries if type(entry) is tuple]

    def sample(self, key: str) -> Value | None:
        """Return the value that the method `samples` yields for `key`; None if `key` is missing."""
        value: Any = dict.get(self, key)
        return self.make(value[0], 0) if type(value) is tuple else value

    def raw(self) -> Iterable[Value | Row]:
        """Return all entries in order: values, and rows of entries whose value is not made yet."""
        return dict.values(self)

    def row(self, key: str) -> Row | None:
        """Return the row of `key`; None if its value is already made or `key` is missing."""
        value: Any = dict.get(self, key)
        return value if type(value) is tuple else None

    # --- a dictionary ----------------------------------------------------------------------

    def __getitem__(self, key: str) -> Value:
        """Return the value of `key`. If a row is stored for `key`, replace it by the value."""
        value = _get(self, key)
        return self._made(key, value) if type(value) is tuple else value

    def _made(self, key: str, row: Any) -> Value:
        value = self.make(row[0], row[1])
        _set(self, key, value)
        return value

    def _make_all(self) -> None:
        for key, value in dict.items(self):
            if type(value) is tuple:  # replacing a value is allowed during an iteration
                self._made(key, value)

    @overload
    def get(self, key: str, default: None = None, /) -> Value | None: ...

    @overload
    def get(self, key: str, default: Value, /) -> Value: ...

    @overload
    def get(self, key: str, default: Other, /) -> Value | Other: ...

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return the value of `key`, or `default`."""
        value = _find(self, key, default)
        if type(value) is tuple and value is not default:
            return self._made(key, value)
        return value

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """Return the value of `key`; if `key` is missing, enter `default` and return it."""
        value: Any = dict.setdefault(self, key, default)
        return self._made(key, value) if type(value) is tuple else value

    def pop(self, key: str, *default: Any) -> Any:
        """Remove `key` and return its value, or `default` if there is no such key.

        Raises KeyError if there is neither such a key nor a default.
        """
        value: Any = _pop(self, key, *default)
        if type(value) is tuple and not (default and value is default[0]):
            return self.make(*value)
        return value

    def popitem(self) -> tuple[str, Value]:
        """Remove the last entry and return its (key, value)."""
        key, value = dict.popitem(self)
        found: Any = value
        return key, self.make(*found) if type(found) is tuple else value

    def values(self) -> ValuesView[Value]:  # type: ignore[override] # as dict_values
        """Return all values."""
        self._make_all()
        return super().values()

    def items(self) -> ItemsView[str, Value]:  # type: ignore[override] # as dict_items
        """Return all entries."""
        self._make_all()
        return super().items()

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the keys.

        Without this method, C functions would treat the object as a plain dictionary. The functions
        would copy the rows of unread entries instead of the values that `make` returns for them.
        """
        return super().__iter__()

    def copy(self) -> LazyDict[Value]:
        """Return a copy of this LazyDict; entries that are still rows are copied as rows."""
        copy = LazyDict(self.make)
        entries: Iterable[tuple[str, Any]] = zip(super().keys(), dict.values(self), strict=True)
        dict.update(copy, entries)
        return copy

    def __eq__(self, other: object) -> bool:
        self._make_all()
        if isinstance(other, LazyDict):
            other._make_all()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        self._make_all()
        return super().__repr__()

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a plain dictionary with the entries of both dictionaries.

        If both dictionaries have a key, the result has the value in `other`.
        """
        return {**self, **other}

    def __ror__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**other, **self}

    def __reduce__(self) -> tuple[Any, ...]:
        """Make the modules `pickle` and `copy` create a plain dictionary with all values."""
        return dict, (list(self.items()),)
