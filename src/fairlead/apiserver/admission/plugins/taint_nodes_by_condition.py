"""TaintNodesByCondition: adds the not-ready taint to new nodes.

upstream: plugin/pkg/admission/nodetaint/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.storage.storage import Storage

NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition:
    """The admission plugin `TaintNodesByCondition`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new node gets the not-ready taint."""
        obj = attributes.obj
        if attributes.kind is not NODE or not attributes.is_new:
            return obj
        spec = obj.get("spec") or {}
        taints = spec.get("taints") or []
        if any(_is_not_ready(taint) for taint in taints):
            return obj
        return {**obj, "spec": {**spec, "taints": [*taints, NOT_READY]}}


def _is_not_ready(taint: Json) -> bool:
    return all(taint.get(key) == value for key, value in NOT_READY.items())
