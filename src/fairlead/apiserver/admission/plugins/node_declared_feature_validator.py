"""NodeDeclaredFeatureValidator: refuses a pod's change if the pod's node does not support it.

A Node lists the features of its kubelet in `status.declaredFeatures`. In version 1.36, three kinds
of changes to a bound pod each need a feature:

    GuaranteedQoSPodCPUResize                  changed CPU requests of a pod of QoS Guaranteed
    InPlacePodLevelResourcesVerticalScaling    changed pod-level resources
    InPlacePodVerticalScalingInitContainers    changed resources of init containers, except sidecars

upstream: plugin/pkg/admission/nodedeclaredfeatures/admission.go,
component-helpers/nodedeclaredfeatures/features/inplacepodresize: InferForUpdate
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, parse_quantity
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.storage.storage import Storage

CPU_RESIZE: Final = "GuaranteedQoSPodCPUResize"
POD_LEVEL_RESIZE: Final = "InPlacePodLevelResourcesVerticalScaling"
INIT_RESIZE: Final = "InPlacePodVerticalScalingInitContainers"


class NodeDeclaredFeatureValidator:
    """The admission plugin `NodeDeclaredFeatureValidator`."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a change to a pod if its node does not support the change. Raises ApiError 403."""
        old, new = attributes.old, attributes.obj
        is_update = attributes.kind is POD and attributes.operation is Operation.UPDATE
        if not is_update or attributes.subresource not in ("", "resize") or old is None:
            return new
        node = new["spec"].get("nodeName", "")
        generations = (one["metadata"].get("generation") for one in (old, new))
        if not node or len({*generations}) == 1:
            return new
        required = list(_required(old, new))
        if required:
            missing = _missing_features(attributes, storage, node, required)
            if missing:
                why = f"requires features {', '.join(missing)} which are not available on node"
                raise _refusal(attributes, f"pod update {why} {quoted(node)}")
        return new


def bound_node(attributes: AdmissionAttributes, storage: Storage, name: str) -> Json:
    """Return the node `name`, to which a pod is bound. Raises ApiError 403 if it does not exist."""
    node = storage.find(NODE, "", name)
    if node is None:
        raise _refusal(attributes, f"node {quoted(name)} not found")
    return node


def _refusal(attributes: AdmissionAttributes, why: str) -> ApiError:
    return forbidden(POD, attributes.namespace, attributes.name, why)


def _missing_features(
    attributes: AdmissionAttributes, storage: Storage, node: str, required: list[str]
) -> list[str]:
    status = bound_node(attributes, storage, node).get("status") or {}
    declared = status.get("declaredFeatures") or ()
    return [feature for feature in required if feature not in declared]


def _required(old: Json, new: Json) -> Iterator[str]:
    """Yield the node features that a pod's change from `old` to `new` needs, sorted by name."""
    before, after = old["spec"], new["spec"]
    is_guaranteed = (old.get("status") or {}).get("qosClass") == "Guaranteed"
    pairs = zip(before.get("containers") or (), after.get("containers") or (), strict=False)
    if is_guaranteed and any(_cpu(one) != _cpu(other) for one, other in pairs):
        yield CPU_RESIZE
    if not json_equal(before.get("resources"), after.get("resources")):
        yield POD_LEVEL_RESIZE
    pairs = zip(before.get("initContainers") or (), after.get("initContainers") or (), strict=False)
    if any(
        one.get("restartPolicy") != "Always"
        and not json_equal(one.get("resources"), other.get("resources"))
        for one, other in pairs
    ):
        yield INIT_RESIZE


def _cpu(container: Json) -> Quantity:
    requests = (container.get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("cpu", "0")))
