"""PodPriorities: the priorities that admission gives to the pods of new workloads.

upstream: plugin/pkg/admission/priority/admission.go: admitPod, getDefaultPriority
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.json import Json, mapping, number, text
from fairlead.apiserver.kind import PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.snapshot.manifest import Manifest


class PodPriorities:
    """The priorities of pods by their PriorityClasses."""

    def __init__(self, classes: Iterable[Json]) -> None:
        """`classes` are the PriorityClasses of the cluster; system classes need not be included."""
        found = {text(one, "metadata", "name"): one for one in classes}
        self._values = {
            name: number(one, "value") for name, one in {**SYSTEM_CLASSES, **found}.items()
        }
        defaults = [number(one, "value") for one in found.values() if one.get("globalDefault")]
        self._default = min(defaults, default=0)

    def of(self, spec: Json) -> int | None:
        """Return the priority of a pod with `spec`; None if its class is unknown."""
        name = text(spec, "priorityClassName")
        return self._values.get(name) if name else self._default


def priorities_in(*groups: Iterable[Manifest]) -> PodPriorities:
    """Return the priority of each PriorityClass in `groups`; the last object of a name counts."""
    return PodPriorities(
        mapping(one.value) for group in groups for one in group if one.kind is PRIORITY_CLASS
    )
