"""PodTopologyLabels: a pod bears the labels that say in which zone and region it runs.

They are the node's at the moment of binding; a pod that is created on a node gets them at once.

upstream: plugin/pkg/admission/podtopologylabels/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.storage.storage import Storage

LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Label a binding, or a new pod that has its node already."""
        kind, obj = asked.kind, asked.obj
        if kind is not POD or asked.operation is not Operation.CREATE:
            return obj
        match asked.about.subresource:
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
    """The labels of a node that pods inherit; none of a node that is not there."""
    node = storage.find(NODE, "", name) or {"metadata": {}}
    labels = node["metadata"].get("labels") or {}
    return {key: labels[key] for key in LABELS if key in labels}
