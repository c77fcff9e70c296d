"""StartTimes: when pods that wait at the end of a run will probably start, as percentiles."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs


class StartTimeRow(Struct, frozen=True, kw_only=True):
    """The start time of one pod, workload or gang, as percentiles over all simulations.

    A percentile is None if the subject starts in too few simulations.
    """

    subject: str  # the name of the pod, workload or gang
    kind: str  # "pod", "workload" or "gang"
    pods: int  # the number of the subject's waiting pods
    started: int  # the number of simulations in which the subject starts
    p10: DurationNs | None
    p50: DurationNs | None
    p90: DurationNs | None


class StartTimes(Struct, frozen=True, kw_only=True):
    """The start times, and the data that they are based on.

    If no runtime is known, nothing is simulated: `draws` is 0, and `rows` is empty.
    """

    draws: int  # the number of simulations, each with randomly drawn remaining runtimes
    running: int  # the number of running pods
    known: int  # the number of running pods with a known runtime
    stated: int  # the number of pods with a runtime from a file
    look_ahead: DurationNs  # each simulation covers at most this time
    rows: tuple[StartTimeRow, ...]

    def of(self, subjects: Collection[str]) -> StartTimes:
        """Return a copy of this estimate with only the rows of `subjects`."""
        rows = tuple(one for one in self.rows if one.subject in subjects)
        return replace(self, rows=rows)

    @property
    def words(self) -> str:
        """The numbers of simulations and of known runtimes as text, or why no simulation ran."""
        if not self.draws:
            return (
                "Start times are not estimated, because no runtime is known for any of the "
                f"{self.running:,} running pods. A known runtime does not count if the pod has "
                "already run longer."
            )
        share = round(100 * self.known / self.running) if self.running else 0
        source = f", {self.stated:,} of them from --runtimes" if self.stated else ""
        return (
            f"Start times come from {self.draws:,} simulations with random remaining runtimes. "
            f"Runtimes are known for {self.known:,} of {self.running:,} running pods ({share}%)"
            f"{source}. Pods without a known runtime keep running, including pods that start later."
        )
