"""Replays recorded decisions of kube-scheduler about pods with volumes.

Cases have the form of the cases in module `pod`, with additional storage objects. For each feasible
node, `expect` also lists the claims that would be bound, with their volumes. `expect` also lists
the claims for which volumes would be provisioned. Nodes without such claims are left out.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from fairlead.conformance.scheduling.pod import as_expected, build, pod_info
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.volume_binding.node_volumes import NAME, PodVolumes
from fairlead.engine.plugins.volume_binding.plugin import VolumeBinding
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.evaluation import Evaluation, evaluate
from fairlead.engine.state.pod_info import PodInfo

_KINDS: Final[dict[str, type[ApiObject]]] = {
    "persistentvolumes": PersistentVolume,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
    "csidrivers": CSIDriver,
    "csistoragecapacities": CSIStorageCapacity,
    "volumeattachments": VolumeAttachment,
}


def has_storage(case: Json) -> bool:
    """Return whether `case` contains storage objects."""
    return any(name in case for name in _KINDS)


def has_volumes(case: Json) -> bool:
    """Return whether `case` contains storage objects, or a pending pod with volumes."""
    if has_storage(case):
        return True
    return "pending" in case and bool(case["pending"].get("spec", {}).get("volumes"))


def decide_volumes(case: Json) -> Json:
    """Return Fairlead's decision about a case, in the form of a recording's field `expect`."""
    built = build(case, _KINDS)
    pod = pod_info(built, case["pending"])
    found = evaluate(built, pod)
    result = as_expected(found)
    if found.pre_filter is not None:
        result["unschedulablePlugins"] = list(found.unschedulable_plugins)
    volumes = _volumes(built, pod, found)
    return result | ({"volumes": volumes} if volumes else {})


def _volumes(built: BuiltProfile, pod: PodInfo, found: Evaluation) -> Json:
    """Return, for each feasible node, the claims of `pod` that would be bound or provisioned.

    A node is left out if no claim would be bound or provisioned for it.
    """
    plugin = built.framework.find(NAME)
    assert isinstance(plugin, VolumeBinding)
    state = CycleState()
    if found.pre_filter is not None or plugin.pre_filter(state, pod) is not None:
        return {}
    result: Json = {}
    for name in (name for name, status in found.verdicts.items() if status is None):
        node = built.framework.cluster.table.find(name)
        assert node is not None
        volumes = plugin.volumes_on(state, node)
        if volumes.bindings or volumes.provisions:
            result[name] = _as_expected(volumes)
    return result


def _as_expected(volumes: PodVolumes) -> Json:
    return {
        "bind": {claim.key: volume.key for claim, volume in volumes.bindings},
        "provision": sorted(claim.key for claim in volumes.provisions),
    }
