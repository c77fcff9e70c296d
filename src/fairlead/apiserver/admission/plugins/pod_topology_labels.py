"""PodTopologyLabels: copies a node's zone and region labels to each pod that is bound to the node.

upstream: plugin/pkg/admission/podtopologylabels/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.well_known_label import REGION, ZONE
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.storage.storage import Storage

LABELS: Final = (ZONE, REGION)


class PodTopologyLabels:
    """The admission plugin `PodTopologyLabels`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Add the node's topology labels to a Binding, or to a new pod that has a nodeName."""
        kind, obj = attributes.kind, attributes.obj
        if kind is not POD or attributes.operation is not Operation.CREATE:
            return obj
        match attributes.subresource:
            case "binding":
                target = obj.get("target") or {}
                node = target.get("name", "") if target.get("kind", "Node") == "Node" else ""
            case "":
                node = (obj.get("spec") or {}).get("nodeName", "")
            case _:
                return obj
        labels = _topology(storage, node) if node else {}
        if not labels:
            return obj
        meta = obj.get("metadata") or {}
        return {**obj, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}


def _topology(storage: Storage, name: str) -> Json:
    """Return the topology labels of the node `name`; {} if the node does not exist."""
    node = storage.find(NODE, "", name) or {"metadata": {}}
    labels = node["metadata"].get("labels") or {}
    return {key: labels[key] for key in LABELS if key in labels}
