"""DefaultIngressClass: Ingresses get the class they did not name.

upstream: plugin/pkg/admission/network/defaultingressclass/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.plugin import ALONE, Circumstances, Operation
from fairlead.apiserver.kind import INGRESS, INGRESS_CLASS, Kind
from fairlead.apiserver.storage import Json, Storage

IS_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
CLASS_BETA: Final = "kubernetes.io/ingress.class"


class DefaultIngressClass:
    """The admission plugin."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """Give a new Ingress the default class; of several the newest, by name among equals."""
        if kind is not INGRESS or operation is not Operation.CREATE or circumstances.subresource:
            return obj
        spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
        if spec.get("ingressClassName") is not None or CLASS_BETA in annotations:
            return obj
        defaults = [one for one in storage.items(INGRESS_CLASS) if _is_default(one)]
        if not defaults:
            return obj
        newest = max(one["metadata"]["creationTimestamp"] for one in defaults)
        names = [
            one["metadata"]["name"]
            for one in defaults
            if one["metadata"]["creationTimestamp"] == newest
        ]
        return {**obj, "spec": {**spec, "ingressClassName": min(names)}}


def _is_default(ingress_class: Json) -> bool:
    annotations = ingress_class["metadata"].get("annotations") or {}
    return bool(annotations.get(IS_DEFAULT) == "true")
