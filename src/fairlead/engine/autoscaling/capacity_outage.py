"""CapacityOutage: a period in which a simulated provider has no machines of some kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.engine.core.instant import DurationNs


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityOutage:
    """From `begin` until before `end` after the start of the run, no machine is delivered.

    It affects machines whose Nodes would have all `labels`, and those of the node group or NodePool
    `group`, "" for any. `end` None means forever.
    """

    begin: DurationNs = 0
    end: DurationNs | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    def is_active(self, elapsed: DurationNs) -> bool:
        """Return whether it lasts at `elapsed` after the start of the run."""
        return self.begin <= elapsed and (self.end is None or elapsed < self.end)

    def affects(self, group: str, labels: Mapping[str, str]) -> bool:
        """Return whether machines of `group` whose Nodes have `labels` are affected."""
        return self.group in ("", group) and all(
            labels.get(key) == value for key, value in self.labels.items()
        )
