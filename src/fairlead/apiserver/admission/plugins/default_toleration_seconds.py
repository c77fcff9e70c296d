"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or unreachable.

Unless the pod itself says for how long it tolerates such a node. A stored pod that says nothing was
written by hand, for no server lets such a pod in: it gets what a new pod would.

upstream: plugin/pkg/admission/defaulttolerationseconds/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import Storage

TOLERATION_S_DEFAULT: Final = 300
TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
NO_EXECUTE: Final = "NoExecute"


class DefaultTolerationSeconds:
    """The admission plugin; `seconds` as kube-apiserver's --default-…-toleration-seconds."""

    def __init__(self, seconds: int = TOLERATION_S_DEFAULT) -> None:
        """Both taints are tolerated equally long."""
        self._seconds = seconds

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Let a pod tolerate what it says nothing about."""
        obj = asked.obj
        if asked.kind is not POD or asked.operation is Operation.DELETE or asked.about.subresource:
            return obj
        spec = obj.get("spec", {})
        tolerations = spec.get("tolerations", [])
        missing = [key for key in TOLERATED if not any(_covers(one, key) for one in tolerations)]
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
    """Whether it speaks of that taint, in whatever way."""
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in (
        NO_EXECUTE,
        "",
    )
