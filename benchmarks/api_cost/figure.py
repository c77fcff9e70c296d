"""Figure: a measured value with its target, and the table of all figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A row of the table: `value` in `unit`; `target` is None if there is no target.

    A target is a maximum, or with `is_least` a minimum. `note` adds details.
    """

    what: str
    value: float
    unit: str
    target: float | None = None
    is_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        if self.target is None:
            return True
        return self.value >= self.target if self.is_least else self.value <= self.target

    def row(self) -> tuple[str, str, str, str, str]:
        """Return the cells of the table's row."""
        sign = "≥" if self.is_least else "≤"
        target = "" if self.target is None else f"{sign} {self.target:,.10g}"
        verdict = "" if self.target is None else ("yes" if self.holds else "NO")
        number = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.3g}"
        return self.what, f"{number} {self.unit}", target, verdict, self.note


Figures = Iterator[Figure]


def table(figures: list[Figure]) -> Table:
    """Return a table of `figures` with their targets."""
    shown = Table("what", "measured", "target", "met", "note", title="What the API server costs")
    for figure in figures:
        shown.add_row(*figure.row())
    return shown


def cpu_s(act: Callable[[], object], times: int, rounds: int = 3) -> float:
    """Return the CPU seconds of one call of `act` in this process.

    The result is the least mean of `rounds` rounds, each of which calls `act` `times` times.
    """
    spent = []
    for _ in range(rounds):
        before = process_time()
        for _ in range(times):
            act()
        spent.append((process_time() - before) / times)
    return min(spent)
