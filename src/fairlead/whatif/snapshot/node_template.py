"""The template of a new node: the fields of an existing node that others of its kind share."""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json

HOSTNAME: Final = "kubernetes.io/hostname"
# Controllers put these taints on nodes, for as long as a condition or a cordon lasts.
_CONTROLLERS_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def is_lasting_taint(key: str) -> bool:
    """Return whether a taint with this key was put on its node to stay."""
    return not key.startswith(_CONTROLLERS_TAINTS) and "ClusterAutoscaler" not in key


def node_template(node: Json) -> Json:
    """Labels, lasting taints and size of `node`, as an object without a name."""
    labels = {
        key: value
        for key, value in (node["metadata"].get("labels") or {}).items()
        if key != HOSTNAME
    }
    taints = [
        taint
        for taint in (node.get("spec") or {}).get("taints") or ()
        if is_lasting_taint(str(taint.get("key", "")))
    ]
    status = node.get("status") or {}
    kept = {key: status[key] for key in ("capacity", "allocatable", "nodeInfo") if key in status}
    spec = {"taints": taints} if taints else {}
    template: Json = without_nulls({"metadata": {"labels": labels}, "spec": spec, "status": kept})
    return template
