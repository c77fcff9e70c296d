"""Figures: what was measured, and what it is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: `value` in `unit`, `target` None where none was set.

    A target is a most, or, with `is_least`, a least. `besides` is what else is worth knowing.
    """

    what: str
    value: float
    unit: str
    target: float | None = None
    is_least: bool = False
    besides: str = ""

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        if self.target is None:
            return True
        return self.value >= self.target if self.is_least else self.value <= self.target

    def row(self) -> tuple[str, str, str, str, str]:
        """As it is shown."""
        sign = "≥" if self.is_least else "≤"
        target = "" if self.target is None else f"{sign} {self.target:,.10g}"
        verdict = "" if self.target is None else ("yes" if self.holds else "NO")
        number = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.3g}"
        return self.what, f"{number} {self.unit}", target, verdict, self.besides


Figures = Iterator[Figure]


def table(figures: list[Figure]) -> Table:
    """All figures, targets beside them."""
    shown = Table(
        "what", "measured", "target", "holds", "besides", title="What the API server costs"
    )
    for figure in figures:
        shown.add_row(*figure.row())
    return shown


def cpu_s(act: Callable[[], object], times: int, rounds: int = 3) -> float:
    """CPU seconds of one `act` in this process, the best of some rounds."""
    spent = []
    for _ in range(rounds):
        before = process_time()
        for _ in range(times):
            act()
        spent.append((process_time() - before) / times)
    return min(spent)
