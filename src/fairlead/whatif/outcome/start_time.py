"""StartTimes: when pods that wait at the end of a run start, as percentiles over draws."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from fairlead.engine.core.instant import DurationNs


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimeRow:
    """When a waiting `subject` starts: a pod, workload or gang (`kind`) with `pods` waiting pods.

    It starts in `started` of the draws. A percentile is None if it is later than the simulated
    time.
    """

    subject: str
    kind: str
    pods: int
    started: int
    p10: DurationNs | None
    p50: DurationNs | None
    p90: DurationNs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimes:
    """The rows, and what they are based on.

    `known` of the `running` pods had known runtimes in the `draws`, `stated` of them from a file;
    the draws simulated at most `look_ahead`.
    """

    draws: int
    running: int
    known: int
    stated: int
    look_ahead: DurationNs
    rows: tuple[StartTimeRow, ...]

    def of(self, subjects: Collection[str]) -> StartTimes:
        """Return these start times with the rows of `subjects` only."""
        rows = tuple(one for one in self.rows if one.subject in subjects)
        return replace(self, rows=rows)

    @property
    def words(self) -> str:
        """Return how many draws were made, and how many runtimes were known, as a sentence."""
        share = round(100 * self.known / self.running) if self.running else 0
        source = f", {self.stated:,} of them from --runtimes" if self.stated else ""
        return (
            f"Start times are from {self.draws:,} draws of remaining runtimes, known for "
            f"{self.known:,} of {self.running:,} running pods ({share}%){source}; the others are "
            "taken to run on."
        )
