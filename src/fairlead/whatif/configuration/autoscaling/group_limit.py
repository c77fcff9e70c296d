"""How few and how many nodes a group may have, from what a dump shows of its Cluster Autoscaler.

    flags               --nodes=MIN:MAX:GROUP
    status ConfigMap    cluster-autoscaler-status: minSize and maxSize of each group, as YAML or in
                        the text of versions before 1.30
    MachineDeployments  the annotations of Cluster API with the smallest and the largest size

Cloud providers call a group by a longer name than their labels do: the node pool `general` is
`eks-general-5ec4…`, `aks-general-1234-vmss` or `…/zones/z/instanceGroups/gke-prod-general-7d-grp`.

upstream: clusterstate/api/types.go, cloudprovider/clusterapi/clusterapi_utils.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from fairlead.api.well_known_label import ZONE
from fairlead.whatif.snapshot.manifest import Manifest

_STATUS: Final = "cluster-autoscaler-status"
_OLD_STATUS: Final = re.compile(
    r"^\s*Name:\s+(\S+)\n.*?minSize=(\d+), maxSize=(\d+)", re.MULTILINE | re.DOTALL
)
_CAPI: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"
_PREFIXES: Final = {"EKS": ("eks-{}-",), "AKS": ("aks-{}-",), "kops": ("{}.",)}

Limits = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The limits by the cloud provider's name of a group; `source` says where they were found."""

    by_name: Mapping[str, Limits] = field(default_factory=dict)
    source: str = ""

    @classmethod
    def of(cls, nodes_flags: Sequence[str], manifests: Iterable[Manifest]) -> GroupLimits:
        """Return the limits of the flags `--nodes`, else of the status, else of Cluster API."""
        stated = _of_flags(nodes_flags)
        if stated:
            return cls(stated, "the flags --nodes of the Cluster Autoscaler")
        machines: dict[str, Limits] = {}
        for one in manifests:
            if one.ref.name == _STATUS and one.ref.kind == "ConfigMap":
                stated = _of_status(one.value.get("data"))
            elif one.ref.kind == "MachineDeployment":
                limits = _of_annotations(one.value["metadata"].get("annotations"))
                if limits is not None:
                    machines[one.ref.name] = limits
        if stated:
            return cls(stated, f"the ConfigMap {_STATUS}")
        return cls(machines, "the annotations of MachineDeployments" if machines else "")

    def find(self, owner: str, labels: Mapping[str, str], name: str) -> Limits | None:
        """Return the limits of the group `name`, which has the `labels` of the provider `owner`."""
        for full, limits in self.by_name.items():
            if _is_called(full, owner, labels, name):
                return limits
        return None


def _is_called(full: str, owner: str, labels: Mapping[str, str], name: str) -> bool:
    """Return whether `full` is the provider's name of a group."""
    last = full.rpartition("/")[2]
    if last == name:
        return True
    if owner == "GKE":
        pool = next((value for key, value in labels.items() if key != ZONE), "")
        zone = labels.get(ZONE)
        return f"-{pool}-" in last and (zone is None or f"/{zone}/" in full)
    return any(last.startswith(prefix.format(name)) for prefix in _PREFIXES.get(owner, ()))


def _of_flags(values: Iterable[str]) -> dict[str, Limits]:
    found = {}
    for value in values:
        minimum, _, rest = value.partition(":")
        maximum, _, group = rest.partition(":")
        if minimum.isdigit() and maximum.isdigit():
            found[group] = int(minimum), int(maximum)
    return found


def _of_status(data: Any) -> dict[str, Limits]:
    """Return the limits in a status; what cannot be read states none."""
    text = data.get("status") if isinstance(data, dict) else None
    if not isinstance(text, str):
        return {}
    old = {name: (int(low), int(high)) for name, low, high in _OLD_STATUS.findall(text)}
    if old:
        return old
    try:
        groups = yaml.safe_load(text)["nodeGroups"]
        return {
            str(one["name"]): (int(one["health"]["minSize"]), int(one["health"]["maxSize"]))
            for one in groups
        }
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        return {}


def _of_annotations(annotations: Any) -> Limits | None:
    stated = annotations if isinstance(annotations, dict) else {}
    low, high = (str(stated.get(_CAPI.format(end), "")) for end in ("min", "max"))
    return (int(low), int(high)) if low.isdigit() and high.isdigit() else None
