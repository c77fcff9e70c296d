"""DefaultTolerationSeconds: limits how long pods tolerate not-ready and unreachable nodes.

The plugin adds tolerations of 300 seconds for the NoExecute taints `not-ready` and `unreachable`.
If a pod already tolerates one of these taints, no toleration of this taint is added. Pods of a
snapshot get the default tolerations too. A real server would have added them, so a pod without them
was written by hand.

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
    """The admission plugin `DefaultTolerationSeconds`, without kube-apiserver's flags for it."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a pod gets the default tolerations that it lacks."""
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
                "tolerationSeconds": TOLERATION_SECONDS_DEFAULT,
            }
            for key in missing
        ]
        return {**obj, "spec": {**spec, "tolerations": [*tolerations, *added]}}


def _covers(toleration: Json, key: str) -> bool:
    """Return whether `toleration` matches the taint `key` with the effect NoExecute."""
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in (
        NO_EXECUTE,
        "",
    )
