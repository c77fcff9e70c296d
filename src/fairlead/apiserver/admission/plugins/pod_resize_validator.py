"""PodResizeValidator: refuses resizes that a pod's node can never satisfy.

A resize is refused if the new requests exceed the node's allocatable amounts, or if the node does
not run Linux. The other pods on the node do not count here. The kubelet checks whether the resized
pod fits beside them.

upstream: plugin/pkg/admission/podresize/admission.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairlead.api.codec import decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.field_problem import quoted
from fairlead.api.well_known_label import OS
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.plugins.node_declared_feature_validator import bound_node
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import Storage


class PodResizeValidator:
    """The admission plugin `PodResizeValidator`."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a resize that the pod's node cannot satisfy. Raises ApiError 403."""
        old, new = attributes.old, attributes.obj
        if not attributes.is_resize or old is None:
            return new
        name = new["spec"].get("nodeName", "")
        if not name or old["metadata"].get("generation") == new["metadata"].get("generation"):
            return new
        problem = _problem(new, bound_node(attributes, storage, name))
        if problem:
            raise forbidden(POD, attributes.namespace, attributes.name, problem)
        return new


def _problem(pod: Json, node: Json) -> str:
    excess = "; ".join(_excess(pod, (node.get("status") or {}).get("allocatable") or {}))
    if excess:
        return f"Node didn't have enough allocatable resources: {excess}"
    system = (node["metadata"].get("labels") or {}).get(OS, "")
    if system != "linux":
        name = quoted(node["metadata"]["name"])
        return f"pod resize is only supported on linux nodes, node {name} is {quoted(system)}"
    return ""


def _excess(pod: Json, allocatable: Json) -> Iterator[str]:
    """Yield an error for cpu or memory if `pod` requests more than the node can allocate.

    `allocatable` contains the allocatable amounts of the node.
    """
    view = decode_stored(pod)
    assert isinstance(view, Pod)
    requests = pod_requests(view)
    available = {
        "cpu": milli_value(allocatable.get("cpu", "0")),
        "memory": whole_value(allocatable.get("memory", "0")),
    }
    for name, most in available.items():
        wanted = requests.get(name, 0)
        if wanted > most:
            yield f"{name}, requested: {wanted}, allocatable: {most}"
