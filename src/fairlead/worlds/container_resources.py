"""The resources of containers, for pods whose status does not report these resources.

Since Kubernetes 1.33, kubelets report which resources each container of a pod has. The kubelets of
a simulation report this only after a resize, and older kubelets do not report it at all. Until its
first resize, a container has the resources of the spec.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json

CONTAINER_LISTS: Final = {
    "containers": "containerStatuses",
    "initContainers": "initContainerStatuses",
}
"""The fields of a pod's spec with containers, and the fields of the status that report them."""
_COMPLETED: Final = ("Succeeded", "Failed")


def missing_resources(pod: Json) -> dict[str, Any]:
    """Return the container statuses of `pod`, completed with resources from the spec.

    The result maps a field of the pod's status, such as `containerStatuses`, to its new list. The
    new list also has a status for each container that had no status. A list without changes is left
    out. Returns {} if the pod has no node or has completed.
    """
    spec, status = pod["spec"], pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in _COMPLETED:
        return {}
    found = {}
    for field, reports in CONTAINER_LISTS.items():
        known = {one.get("name"): one for one in status.get(reports) or ()}
        containers = spec.get(field) or ()
        rows = [_with_resources(known.get(one.get("name"), {}), one) for one in containers]
        if any(row is not known.get(row["name"]) for row in rows):
            found[reports] = rows
    return found


def _with_resources(status: Json, container: Json) -> Json:
    """Return `status`, or a copy with the resources of `container` if `status` has no resources."""
    if "resources" in status:
        return status
    resources = container.get("resources") or {}
    amounts = {key: resources[key] for key in ("requests", "limits") if resources.get(key)}
    allocated = resources.get("requests")
    row = {"name": container.get("name", ""), **status, "resources": amounts}
    return {**row, "allocatedResources": allocated} if allocated else row
