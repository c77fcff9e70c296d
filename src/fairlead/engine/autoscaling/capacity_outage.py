"""CapacityOutage: a period in which a simulated provider cannot deliver certain machines."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs


class CapacityOutage(Struct, frozen=True, kw_only=True):
    """A period of a run in which the simulated provider cannot deliver certain machines.

    The outage lasts from `begin` until `end` (None: forever), in ns since the start of the run. The
    outage affects machines of the node group or NodePool `group` ("" for any) if the labels of
    their Nodes include all `labels`. If `stops_machines` is set, machines that are being created
    become Nodes only after the outage.
    """

    begin: DurationNs = 0
    end: DurationNs | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    stops_machines: bool = False

    def starting(self, elapsed: DurationNs) -> CapacityOutage:
        """Return a copy whose `begin` and `end` are `elapsed` ns later."""
        end = None if self.end is None else elapsed + self.end
        return replace(self, begin=elapsed + self.begin, end=end)

    def is_active(self, elapsed: DurationNs) -> bool:
        """Return whether the outage is in effect `elapsed` ns after the start of the run."""
        return self.begin <= elapsed and (self.end is None or elapsed < self.end)

    def affects(self, group: str, labels: Mapping[str, str]) -> bool:
        """Return whether the outage affects a machine of `group` whose Node has `labels`."""
        return self.group in ("", group) and all(
            labels.get(key) == value for key, value in self.labels.items()
        )

    def stops(self, group: str, labels: Mapping[str, str], elapsed: DurationNs) -> bool:
        """Return whether the outage keeps a new machine of `group` from becoming a Node.

        `labels` are the labels of the machine's future Node. The run began `elapsed` ns ago.
        """
        return self.stops_machines and self.is_active(elapsed) and self.affects(group, labels)
