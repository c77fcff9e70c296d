"""CapacityRecorder: follows the allocatable amounts of all nodes through a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.whatif.outcome.jobs import CapacityChange
from fairlead.whatif.run.allocation import allocatable_of

_NOTHING: Mapping[str, str] = {}


class CapacityRecorder(Struct):
    """Observes nodes, and records the sum of their allocatable amounts whenever it changes."""

    changes: list[CapacityChange] = field(default_factory=list)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _total: Counter[str] = field(default_factory=Counter)

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record the nodes in `stimulus`, which arrives at `now`."""
        match stimulus:
            case ObjectsLoaded(objects=objects):
                changed = [self._update(one) for one in objects]
            case ObjectChanged(object=found):
                changed = [self._update(found)]
            case ObjectDeleted(object=Node() as node):
                changed = [self._replace(self._nodes.pop(node.metadata.name, None), None)]
            case _:
                return
        if any(changed):
            self._record(now)

    def _update(self, found: ApiObject) -> bool:
        if not isinstance(found, Node):
            return False
        name = found.metadata.name
        before, self._nodes[name] = self._nodes.get(name), found
        return self._replace(before, found)

    def _replace(self, before: Node | None, after: Node | None) -> bool:
        """Count `after` instead of `before`; return whether their amounts differ."""
        old = _NOTHING if before is None else before.status.allocatable
        new = _NOTHING if after is None else after.status.allocatable
        if old is new or old == new:
            return False
        if before is not None:
            self._total.subtract(allocatable_of(before))
        if after is not None:
            self._total.update(allocatable_of(after))
        return True

    def _record(self, now: Instant) -> None:
        change = CapacityChange(now, dict(self._total))
        if self.changes and self.changes[-1].at == now:
            self.changes[-1] = change
        else:
            self.changes.append(change)
