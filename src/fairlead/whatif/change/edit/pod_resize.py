"""The resize of one pod, in place: the command that makes it, and notes about it.

If the status of the pod does not report the resources of its containers, the resources in the spec
are used (`worlds/container_resources.py`). Simulated containers do not restart, even if their
resizePolicy requires it.

upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodResizeAction
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json, items, mapping
from fairlead.apiserver.validation.core.resource import quantity_or_none
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.worlds.container_resources import CONTAINER_LISTS, missing_resources

_COMPLETED: Final = ("Succeeded", "Failed")
_RESTART: Final = "RestartContainer"


def resize_of(pod: ObjectRef, after: Json) -> Command:
    """Return the command that gives the containers of `pod` their resources in `after`.

    `after` is the content of the pod after the resize.
    """
    lists = {key: after["spec"][key] for key in CONTAINER_LISTS if key in after["spec"]}
    return PatchObject(pod, {"spec": lists}, "resize")


def resize_notes(pod: Manifest, after: Json, option: str) -> list[str]:
    """Return notes about the resize of `pod`; `after` is the pod's content after the resize.

    Raises InputError that names `option` if the pod has completed.
    """
    before = pod.value
    if (phase := before.get("status", {}).get("phase")) in _COMPLETED:
        problem = f"its phase is {phase}, so it cannot be resized"
        raise InputError(option, problem, object_name=pod.title)
    notes = []
    owners = items(before, "metadata", "ownerReferences")
    if owner := next((one for one in owners if one.get("controller")), None):
        controller = f"{owner.get('kind', '')} {owner.get('name', '')}"
        notes.append(
            f"{pod.title}: the resize does not change {controller}, so a replacement of the pod "
            "has the resources of the pod template."
        )
    if before.get("status", {}).get("phase") == "Running" and missing_resources(before):
        notes.append(
            f"{pod.title}: its status does not report the resources of its containers, as kubelets "
            "do since Kubernetes 1.33. They are assumed to be those of its spec."
        )
    if restarted := sorted(_restarted(before, after)):
        notes.append(
            f"{pod.title}: a kubelet would restart {', '.join(restarted)} (resizePolicy). The "
            "simulation does not."
        )
    return notes


def _restarted(before: Json, after: Json) -> Iterator[str]:
    """Yield the names of the containers that must restart for the resize."""
    for field in CONTAINER_LISTS:
        pairs = zip(items(before, "spec", field), items(after, "spec", field), strict=False)
        for was, is_now in pairs:
            changed = _changed_resources(mapping(was, "resources"), mapping(is_now, "resources"))
            policies = map(mapping, items(was, "resizePolicy"))
            if any(
                one.get("restartPolicy") == _RESTART and one.get("resourceName") in changed
                for one in policies
            ):
                yield str(was.get("name", ""))


def _changed_resources(before: Json, after: Json) -> list[str]:
    """Return the names of the resources whose request or limit changes."""
    parts = [(mapping(before, part), mapping(after, part)) for part in ("requests", "limits")]
    return [
        name
        for old, new in parts
        for name in old | new
        if quantity_or_none(old.get(name, "")) != quantity_or_none(new.get(name, ""))
    ]
