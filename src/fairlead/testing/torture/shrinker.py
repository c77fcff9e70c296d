"""Makes a failing scenario smaller: removes the parts that the failure does not need.

Changes, faults and objects are removed in chunks: first all at once, then smaller and smaller
chunks, and finally single items. A removal is kept if the same law breaks in the same way. This
method is delta debugging (Zeller, Hildebrandt, 2002).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.testing.torture.run import Result, Violation, run
from fairlead.testing.torture.scenario import TortureScenario

RUNS_MAX: Final = 400
_NAME: Final = re.compile(r"[\w./-]*\d[\w./-]*")
_PARTS: Final = ("changes", "faults", "objects")


class Shrinker:
    """Shrinks one failing run."""

    def __init__(self, failed: Result, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Prepare to shrink `failed`, which has a failure.

        Shrinking ends early when `is_over` returns true, or after RUNS_MAX runs.
        """
        assert failed.failure is not None
        self.result = failed
        self.runs = 0
        self._shape = shape_of(failed.failure)
        self._is_over = is_over

    def shrink(self) -> Result:
        """Return the smallest failing run that was found.

        First, the scenario runs again with the faults of the failed run as its `faults`. If this
        second run does not fail in the same way, return the failed run.
        """
        if not self._accepts(replace(self.result.scenario, faults=self.result.faults)):
            return self.result
        size = None
        while size != (size := self._size()) and not self._is_spent():
            for part in _PARTS:
                self._shrink_part(part)
            self._shorten()
        return self.result

    def _size(self) -> int:
        return sum(len(getattr(self.result.scenario, part) or ()) for part in _PARTS)

    def _shrink_part(self, part: str) -> None:
        """Try to remove the items of `part`: first all at once, then ever smaller chunks."""
        chunk = max(1, len(self._part(part)))
        while True:
            start = 0
            while start < len(self._part(part)) and not self._is_spent():
                items = self._part(part)
                left = (*items[:start], *items[start + chunk :])
                if not self._accepts(replace(self.result.scenario, **{part: left})):
                    start += chunk
            if chunk == 1 or self._is_spent():
                return
            chunk = (chunk + 1) // 2

    def _part(self, part: str) -> Sequence[Any]:
        items: Sequence[Any] = getattr(self.result.scenario, part) or ()
        return items

    def _shorten(self) -> None:
        """Try to shorten the phase `chaos`, so that it ends 60 s after the last change."""
        scenario = self.result.scenario
        last = max((one.at_ms for one in scenario.changes), default=0)
        if last + 60_000 < scenario.chaos_ms:
            self._accepts(replace(scenario, chaos_ms=last + 60_000))

    def _accepts(self, scenario: TortureScenario) -> bool:
        """Run `scenario`; if it fails like the original run, keep the result and return True."""
        self.runs += 1
        result = run(scenario)
        if result.failure is None or shape_of(result.failure) != self._shape:
            return False
        used = set(result.faults)
        faults = tuple(one for one in scenario.faults or () if one in used)
        result.scenario = replace(scenario, faults=faults)
        self.result = result
        return True

    def _is_spent(self) -> bool:
        return self.runs >= RUNS_MAX or self._is_over()


def shape_of(failure: Violation) -> str:
    """Return the law and message of `failure`, with `#` for names and numbers in the message."""
    return f"{failure.law.name} {_NAME.sub('#', failure.message)}"
