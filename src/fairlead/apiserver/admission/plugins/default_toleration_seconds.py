"""DefaultTolerationSeconds: pods tolerate not-ready and unreachable nodes for a while.

A pod with a toleration for the taint keeps its own. This applies to pods of a snapshot, too: a pod
without these tolerations was written by hand, since a real server would have added them.

upstream: plugin/pkg/admission/defaulttolerationseconds/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import Storage

TOLERATION_SECONDS_DEFAULT: Final = 300  # for both taints
TOLERATED_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
NO_EXECUTE: Final = "NoExecute"


class DefaultTolerationSeconds:
    """The admission plugin `DefaultTolerationSeconds`, without kube-apiserver's flags."""

    def __init__(self, seconds: int = TOLERATION_SECONDS_DEFAULT) -> None:
        """Sets the tolerationSeconds for both taints to `seconds`."""
        self._seconds = seconds

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Adds the missing tolerations."""
        obj = attributes.obj
        if (
            attributes.kind is not POD
            or attributes.operation is Operation.DELETE
            or attributes.subresource
        ):
            return obj
        spec = obj.get("spec", {})
        tolerations = spec.get("tolerations", [])
        missing = [
            key for key in TOLERATED_TAINTS if not any(_covers(one, key) for one in tolerations)
        ]
        if not missing:
            return obj
        added = [
            {
                "key": key,
                "operator": "Exists",
                "effect": NO_EXECUTE,
                "tolerationSeconds": self._seconds,
            }
            for key in missing
        ]
        return {**obj, "spec": {**spec, "tolerations": [*tolerations, *added]}}


def _covers(toleration: Json, key: str) -> bool:
    """Return whether a toleration has that key (or any), and the effect NoExecute (or any)."""
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in (
        NO_EXECUTE,
        "",
    )
