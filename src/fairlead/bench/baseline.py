"""Compares benchmark results with the results of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.api.json import Json

# The results of two runs on the same machine differ by a few percent.
TOLERANCE: Final = 0.15
_COMPARED: Final = (("cpu_seconds", "s of CPU time"), ("peak_mib", "MiB at the peak"))


def is_result(found: object) -> bool:
    """Return whether `found` is a result that `regressions` can compare.

    A result needs a workload; the compared values may be missing.
    """
    if not isinstance(found, dict) or not isinstance(found.get("workload"), str):
        return False
    return all(isinstance(found.get(field), float | int | None) for field, _ in _COMPARED)


def regressions(results: Sequence[Json], earlier: Mapping[str, Json]) -> list[str]:
    """Return a line for each workload whose CPU time or peak memory rose by more than 15 %.

    If both rose, the workload has two lines. `earlier` has the earlier results, keyed by workload.
    """
    found: list[str] = []
    for result in results:
        before = earlier.get(result["workload"], {})
        for field, unit in _COMPARED:
            now, then = result.get(field), before.get(field)
            if now and then and now > then * (1 + TOLERANCE):
                more = 100 * (now / then - 1)
                found.append(
                    f"{result['workload']}: {now:,.2f} {unit}, {more:.0f}% more than {then:,.2f}"
                )
    return found
