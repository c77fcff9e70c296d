"""DisabledFields: removes the fields of disabled features from new and updated objects.

An update keeps a disabled field that the stored object already has. Upstream drops disabled fields
in its strategies. Fairlead drops them in this plugin. A simulation does not run this plugin, so it
keeps every field of its input.

upstream: pkg/api/pod/util.go: dropDisabledFields; pkg/registry/scheduling/podgroup/strategy.go:
dropDisabledPodGroupFields; pkg/registry/scheduling/workload/strategy.go;
pkg/registry/apps/statefulset/strategy.go: dropStatefulSetDisabledFields
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.kind import POD_GROUP, STATEFUL_SET, WORKLOAD
from fairlead.apiserver.storage.storage import Storage

GENERIC_WORKLOAD: Final = "GenericWorkload"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
MAX_UNAVAILABLE_STATEFUL_SET: Final = "MaxUnavailableStatefulSet"
_ROLLING_UPDATE: Final = ("spec", "updateStrategy", "rollingUpdate")
_SCHEDULING_GROUP: Final = "schedulingGroup"
_POD_SPECS: Final[dict[str, tuple[str, ...]]] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}
# The feature gates of these fields, TopologyAwareWorkloadScheduling and DRAWorkloadResourceClaims,
# are always off in Fairlead.
_UNSUPPORTED: Final = ("schedulingConstraints", "resourceClaims")
_OF_PREEMPTION: Final = ("disruptionMode", "priorityClassName", "priority")


class DisabledFields:
    """Drops disabled fields of PodGroups, Workloads, StatefulSets, pods and pod templates."""

    def __init__(self, gates: Collection[str]) -> None:
        """`gates` are the enabled feature gates."""
        self._keeps_groups = GENERIC_WORKLOAD in gates
        self._keeps_max_unavailable = MAX_UNAVAILABLE_STATEFUL_SET in gates
        with_preemption = WORKLOAD_AWARE_PREEMPTION in gates
        self._dropped = _UNSUPPORTED if with_preemption else (*_UNSUPPORTED, *_OF_PREEMPTION)

    def admit(self, attributes: AdmissionAttributes, _storage: Storage) -> Json:
        """Return the object without disabled fields; fields that the old object has are kept.

        In the status of a PodGroup, resourceClaimStatuses is dropped even if the old object has it.
        """
        obj = attributes.obj
        if attributes.operation not in (Operation.CREATE, Operation.UPDATE):
            return obj
        old = attributes.old or {}
        if attributes.kind is POD_GROUP and attributes.subresource == "status":
            return _without(obj, {}, ("status",), ("resourceClaimStatuses",))
        if attributes.subresource:
            return obj
        if attributes.kind is POD_GROUP:
            return _without(obj, old, ("spec",), self._dropped)
        if attributes.kind is WORKLOAD:
            return self._workload(obj, old)
        if attributes.kind is STATEFUL_SET and not self._keeps_max_unavailable:
            obj = _without(obj, old, _ROLLING_UPDATE, ("maxUnavailable",))
        path = _POD_SPECS.get(attributes.kind.kind)
        if path is None or self._keeps_groups or attributes.kind.is_custom:
            return obj
        return _without(obj, old, path, (_SCHEDULING_GROUP,))

    def _workload(self, obj: Json, old: Json) -> Json:
        """Return the Workload `obj`; the templates of a new Workload lose the disabled fields."""
        spec = obj.get("spec") or {}
        if old or not spec.get("podGroupTemplates"):
            return obj  # the templates cannot change
        templates = [
            {key: value for key, value in one.items() if key not in self._dropped}
            for one in spec["podGroupTemplates"]
        ]
        return {**obj, "spec": {**spec, "podGroupTemplates": templates}}


def _without(obj: Json, old: Json, path: tuple[str, ...], names: Collection[str]) -> Json:
    """Return `obj` without the fields `names` at `path`; fields that `old` has there are kept."""
    part, before = _at(obj, path), _at(old, path)
    dropped = [name for name in names if name in part and name not in before]
    if not dropped:
        return obj
    kept = {key: value for key, value in part.items() if key not in dropped}
    return _replaced(obj, path, kept)


def _at(obj: Json, path: tuple[str, ...]) -> Json:
    part: Any = obj
    for name in path:
        part = part.get(name) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}


def _replaced(obj: Json, path: tuple[str, ...], part: Json) -> Json:
    first, *rest = path
    inner = _replaced(obj[first], tuple(rest), part) if rest else part
    return {**obj, first: inner}
