"""The resize of one pod, in place: the commands that make it, and notes about it.

Since Kubernetes 1.33, a kubelet reports in the status of a pod which resources each container has,
and resizes containers. If a dump lacks these reports, the containers are assumed to have the
resources of the spec. Simulated containers do not restart, even if their resizePolicy requires it.

upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodResizeAction
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.engine.core.command import Command, ObjectRef, PatchObject, PatchStatus
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

CONTAINER_LISTS: Final = {
    "containers": "containerStatuses",
    "initContainers": "initContainerStatuses",
}
"""The fields of a pod's spec with containers, and the fields of the status that report them."""
_COMPLETED: Final = ("Succeeded", "Failed")
_RESTART: Final = "RestartContainer"


def resize_of(pod: ObjectRef, before: Json, after: Json) -> Iterator[Command]:
    """Yield the commands that give the containers of `pod` the resources that they have in `after`.

    `before` and `after` are the contents of the pod.
    """
    if reports := _missing_reports(before):
        yield PatchStatus(pod, reports)
    lists = {key: after["spec"][key] for key in CONTAINER_LISTS if key in after["spec"]}
    yield PatchObject(pod, {"spec": lists}, "resize")


def with_reports(before: Json, after: Json) -> Json:
    """Return `after` with the resources that the containers are assumed to have before the resize.

    The next resize of the pod then starts from these resources, not from those in `after`.
    """
    reports = _missing_reports(before)
    return {**after, "status": {**after["status"], **reports}} if reports else after


def resize_notes(pod: Manifest, after: Json, option: str) -> list[str]:
    """Return notes about the resize of `pod`; `after` is its content after the resize.

    Raises InputError that names `option` if the pod has completed.
    """
    before = pod.value
    if (phase := before.get("status", {}).get("phase")) in _COMPLETED:
        problem = f"its phase is {phase}, so it cannot be resized"
        raise InputError(option, problem, object_name=pod.title)
    notes = []
    owners = before["metadata"].get("ownerReferences") or ()
    if owner := next((one for one in owners if one.get("controller")), None):
        notes.append(
            f"{pod.title}: the resize does not change {owner['kind']} {owner['name']}, so a "
            "replacement of the pod has the resources of the pod template."
        )
    if _missing_reports(before):
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


def _missing_reports(pod: Json) -> dict[str, Any]:
    """Return the lists of container statuses in which resources are missing, with these added.

    The result is keyed by the field of the status. The added resources are those of the spec.
    Return {} if the pod does not run.
    """
    spec, status = pod["spec"], pod.get("status", {})
    if status.get("phase") != "Running":
        return {}
    found = {}
    for field, reports in CONTAINER_LISTS.items():
        known = {one.get("name"): one for one in status.get(reports) or ()}
        rows = [_reported(one, known.get(one.get("name"), {})) for one in spec.get(field) or ()]
        if any(row is not known.get(row["name"]) for row in rows):
            found[reports] = rows
    return found


def _reported(container: Json, status: Json) -> Json:
    if "resources" in status:
        return status
    resources = container.get("resources") or {}
    amounts = {key: resources[key] for key in ("requests", "limits") if resources.get(key)}
    allocated = resources.get("requests")
    row = {"name": container.get("name", ""), **status, "resources": amounts}
    return {**row, "allocatedResources": allocated} if allocated else row


def _restarted(before: Json, after: Json) -> Iterator[str]:
    """Yield the names of the containers that must restart for the resize."""
    for field in CONTAINER_LISTS:
        old = before["spec"].get(field) or ()
        for was, is_now in zip(old, after["spec"].get(field) or (), strict=False):
            changed = _changed_resources(was.get("resources") or {}, is_now.get("resources") or {})
            policies = was.get("resizePolicy") or ()
            by_restart = {
                one["resourceName"] for one in policies if one["restartPolicy"] == _RESTART
            }
            if changed & by_restart:
                yield str(was.get("name", ""))


def _changed_resources(before: Json, after: Json) -> set[str]:
    parts = [(before.get(part) or {}, after.get(part) or {}) for part in ("requests", "limits")]
    return {name for old, new in parts for name in {*old, *new} if old.get(name) != new.get(name)}
