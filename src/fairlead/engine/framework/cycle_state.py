"""CycleState: data that plugins share between the extension points of one scheduling cycle."""

from __future__ import annotations

from typing import Protocol, TypeVar, cast, runtime_checkable

Value = TypeVar("Value")


@runtime_checkable
class Cloneable(Protocol):
    """Protocol for plugin state that `add_pod` and `remove_pod` modify; a dry run uses a copy."""

    def clone(self) -> Cloneable:
        """Return an independent copy."""
        ...


class CycleState:
    """A store of one value per class: the key of a value is its class.

    Each plugin defines the classes of its values. `skipped_filters` and `skipped_scores` name the
    plugins that returned SKIP for the cycle's pod (framework/cycle_state.go: SkipFilterPlugins,
    SkipScorePlugins).
    """

    __slots__ = ("_values", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._values: dict[type[object], object] = {}
        self.skipped_filters: dict[str, None] = {}
        self.skipped_scores: dict[str, None] = {}

    def write(self, value: object) -> None:
        """Store `value` under its class."""
        self._values[type(value)] = value

    def read(self, kind: type[Value]) -> Value:
        """Return the value stored under `kind`; raises KeyError if there is none."""
        value = self._values.get(kind)
        if value is None:
            raise KeyError(f"{kind.__name__} was not prepared (is PreFilter or PreScore disabled?)")
        assert isinstance(value, kind)
        return value

    def find(self, kind: type[Value]) -> Value | None:
        """Return the value stored under `kind`, or None."""
        return cast("Value | None", self._values.get(kind))

    def clone(self) -> CycleState:
        """Return a copy; add_pod and remove_pod on the copy do not affect the original."""
        copy = CycleState()
        copy.skipped_filters = self.skipped_filters.copy()
        copy.skipped_scores = self.skipped_scores.copy()
        if self._values:
            copy._values = {kind: _cloned(value) for kind, value in self._values.items()}
        return copy


def _cloned(value: object) -> object:
    clone = getattr(value, "clone", None)  # fifty times faster than isinstance(value, Cloneable)
    return value if clone is None else clone()
