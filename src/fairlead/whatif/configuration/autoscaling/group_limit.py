"""The minimum and maximum size of node groups, from the Cluster Autoscaler data in a dump.

    flags               --nodes=MIN:MAX:GROUP
    status ConfigMap    cluster-autoscaler-status: minSize and maxSize of each group, as YAML or in
                        the text of versions before 1.30
    MachineDeployments  the annotations of Cluster API with the smallest and the largest size;
                        also those of MachineSets without MachineDeployment

A cloud provider's name of a group is longer than the name in node labels. For the node pool
`general`, for example, the provider's name is `eks-general-5ec4…`,
`eksctl-prod-nodegroup-general-NodeGroup-1LR…`, `aks-general-1234-vmss` or
`…/zones/z/instanceGroups/gke-prod-general-7d-grp`.

upstream: clusterstate/api/types.go, cloudprovider/clusterapi/clusterapi_utils.go
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.text import yaml_documents
from fairlead.api.well_known_label import ZONE
from fairlead.engine.workloads.identity import ALPHABET
from fairlead.whatif.snapshot.installed_autoscaler import STATUS, is_status
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import (
    AKS_AGENT_POOL,
    EKS_NODE_GROUP,
    EKSCTL_NODE_GROUP,
    GKE_NODE_POOL,
    KOPS_INSTANCE_GROUP,
)
from fairlead.whatif.snapshot.samples import samples

GROUP_LABELS: Final = (
    ("EKS", EKS_NODE_GROUP, ""),
    ("eksctl", EKSCTL_NODE_GROUP, ""),
    ("GKE", GKE_NODE_POOL, ZONE),
    ("AKS", AKS_AGENT_POOL, ""),
    ("kops", KOPS_INSTANCE_GROUP, ""),
    ("Cluster API", "cluster.x-k8s.io/deployment-name", ""),
)
"""(provider, label with the name of the node's group, label that divides the group further).

Nodes of a managed node group have the label of EKS, and that of eksctl if eksctl created the group.
"""

_OLD_STATUS: Final = re.compile(
    r"^[ \t]*Name:[ \t]+(?P<name>\S+)|minSize=(?P<low>[0-9]+), maxSize=(?P<high>[0-9]+)",
    re.MULTILINE,
)
_BACKOFF: Final = "Backoff"
_DISCOVERY: Final = "node-group-auto-discovery"
_SIZE: Final = re.compile(r"[0-9]{1,10}")  # the digits of an integer of 32 bits
_CAPI_LIMITS: Final = (
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size",
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size",
)
_CAPI_OWNER: Final = "cluster.x-k8s.io/owner-name"
_MACHINE_SETS: Final = "machinesets.cluster.x-k8s.io"
_CAPI_OWNER_KIND: Final = "cluster.x-k8s.io/owner-kind"
# The name of a MachineSet is the name of its MachineDeployment and a random suffix. Before Cluster
# API 1.5, the suffix was a hash (cluster-api internal/controllers/machinedeployment/mdutil).
_CAPI_SET_END: Final = re.compile(f"-[{ALPHABET}]{{5,10}}$")
_HEX: Final = "[0-9a-f]+"  # without it, the names of the pool `app-gpu` would fit the pool `app`
_FORMS: Final = {
    "EKS": f"eks-{{}}(-{_HEX})+$",
    # CloudFormation names the Auto Scaling group after the stack and the resource in it.
    "eksctl": "eksctl-.+-nodegroup-{}-NodeGroup-",
    "AKS": r"aks-{}-[0-9]+-vmss",
    "kops": r"{}\.",
}

Limits = tuple[int, int]


class GroupLimits(Struct, frozen=True):
    """The (minimum, maximum) sizes of groups, by the cloud provider's name of the group."""

    by_name: Mapping[str, Limits] = field(default_factory=dict)
    source: str = ""  # names the part of the dump that contains the limits
    has_all: bool = True  # whether `by_name` contains all groups that the autoscaler manages
    # The names of the MachineSets of Cluster API that no MachineDeployment owns.
    standalone: frozenset[str] = frozenset()
    # Whether the dump has the status ConfigMap, but this ConfigMap states no limits that can be
    # read.
    has_useless_status: bool = False

    @classmethod
    def of(cls, flags: Sequence[tuple[str, str]], manifests: Iterable[Manifest]) -> GroupLimits:
        """Return the limits from the first source in the module's table that states limits.

        `flags` are the (name, value) pairs of the flags of the Cluster Autoscaler.
        """
        manifests = samples(manifests)
        standalone = frozenset(one.ref.name for one in manifests if _is_standalone(one))
        stated = _of_flags(value for name, value in flags if name == "nodes")
        if stated:
            discovers = any(name == _DISCOVERY for name, _ in flags)
            source = "the flags --nodes of the Cluster Autoscaler"
            return cls(stated, source, not discovers, standalone)
        machines: dict[str, Limits] = {}
        kinds: dict[str, None] = {}
        has_status = False
        for one in manifests:
            if is_status(one):
                has_status = True
                stated = _of_status(one.value.get("data"))
            elif one.kind.kind == "MachineDeployment" or _is_standalone(one):
                annotations = one.value["metadata"].get("annotations", {})
                low, high = (annotations.get(key, "") for key in _CAPI_LIMITS)
                limits = _limits(low, high)
                if limits is not None:
                    machines[one.ref.name] = limits
                    kinds[f"{one.kind.kind}s"] = None
        if stated:
            return cls(stated, f"the ConfigMap {STATUS}", standalone=standalone)
        source = f"the annotations of {' and '.join(kinds)}" if kinds else ""
        return cls(machines, source, standalone=standalone, has_useless_status=has_status)

    def find(self, owner: str, labels: Mapping[str, str], name: str) -> tuple[str, Limits] | None:
        """Return (the provider's name, the limits) of the group `name`; None if unknown.

        `labels` are the labels by which the provider `owner` marks the group's nodes. If several
        names could belong to the group, the shortest name is used. For example, both
        `gke-prod-pool-7d-grp` and `gke-prod-app-pool-7d-grp` could belong to the group `pool`.
        """
        named = (full for full in self.by_name if _is_called(full, owner, labels, name))
        found = min(named, key=len, default=None)
        return None if found is None else (found, self.by_name[found])


def limit_annotations(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of `annotations` with which Cluster API limits the size of a group."""
    return {key: annotations[key] for key in _CAPI_LIMITS if key in annotations}


def backed_off_groups(manifests: Iterable[Manifest]) -> dict[str, str]:
    """Return the error code of each group that the autoscaler backed off from after a failure.

    The keys are the provider's names of the groups. An unknown error code is "". The codes come
    from the autoscaler's status ConfigMap. The result is {} if the status is not YAML: versions of
    the autoscaler before 1.30 write a text that contains no error codes.
    """
    data = next((one.value.get("data") for one in manifests if is_status(one)), None)
    text = data.get("status") if isinstance(data, dict) else None
    try:
        return {
            str(one["name"]): str((one["scaleUp"].get("backoffInfo") or {}).get("errorCode", ""))
            for one in _groups_of_yaml(text if isinstance(text, str) else "")
            if one["scaleUp"]["status"] == _BACKOFF
        }
    except (yaml_documents.YamlError, AttributeError, KeyError, TypeError, ValueError):
        return {}


def _is_standalone(one: Manifest) -> bool:
    # upstream: cloudprovider/clusterapi/clusterapi_utils.go: machineSetHasMachineDeploymentOwnerRef
    return one.kind.resource == _MACHINE_SETS and not any(
        owner.kind == "MachineDeployment" for owner in one.metadata.owner_references
    )


def group_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], standalone: Container[str] = ()
) -> tuple[str, str, dict[str, str], dict[str, str]] | None:
    """Return (provider, name, identifying labels, identifying annotations) of a node's group.

    `labels` and `annotations` are the node's. Returns None if the node has no group. Nodes of a
    control plane of Cluster API have no group, because Cluster Autoscaler does not scale control
    planes.

    A MachineDeployment is one group, although it has several MachineSets during a rollout. So for a
    node of a MachineSet, the name of the group is the MachineSet's name without its suffix
    (`_CAPI_SET_END`). If the MachineSet is in `standalone`, the name of the group is the
    MachineSet's full name.

    upstream: cluster-api internal/controllers/machine/machine_controller_noderef.go: reconcileNode
    upstream: cloudprovider/clusterapi/clusterapi_controller.go: findScalableResourceByProviderID
    """
    for owner, key, divider in GROUP_LABELS:
        if key in labels:
            selected = {one: labels[one] for one in (key, divider) if one and one in labels}
            return owner, "-".join(selected.values()), selected, {}
    owner_name, kind = annotations.get(_CAPI_OWNER), annotations.get(_CAPI_OWNER_KIND, "")
    if owner_name is None or kind.endswith("ControlPlane"):
        return None
    is_part = kind == "MachineSet" and owner_name not in standalone
    name = _CAPI_SET_END.sub("", owner_name) if is_part else owner_name
    return "Cluster API", name, {}, {_CAPI_OWNER: owner_name}


def _is_called(full: str, owner: str, labels: Mapping[str, str], name: str) -> bool:
    """Return whether `full` can be the name that the provider `owner` gives to the group `name`.

    The arguments are the same as for `GroupLimits.find`.
    """
    last = full.rpartition("/")[2]
    if last == name:
        return True
    if owner == "GKE":
        pool = next((value for key, value in labels.items() if key != ZONE), "")
        zone = labels.get(ZONE)
        is_of_pool = re.search(f"-{re.escape(pool)}-{_HEX}-grp$", last) is not None
        return is_of_pool and (zone is None or f"/{zone}/" in full)
    form = _FORMS.get(owner)
    return form is not None and re.match(form.format(re.escape(name)), last) is not None


def _of_flags(values: Iterable[str]) -> dict[str, Limits]:
    found = {}
    for value in values:
        low, _, rest = value.partition(":")
        high, _, group = rest.partition(":")
        limits = _limits(low, high)
        if limits is not None:
            found[group] = limits
    return found


def _of_status(data: Any) -> dict[str, Limits]:
    """Return the limits in the data of the status ConfigMap; {} if its text cannot be parsed."""
    text = data.get("status") if isinstance(data, dict) else None
    if not isinstance(text, str):
        return {}
    return _of_old_status(text) or _of_yaml_status(text)


def _of_old_status(text: str) -> dict[str, Limits]:
    found: dict[str, Limits] = {}
    name = ""
    for line in _OLD_STATUS.finditer(text):
        limits = _limits(line["low"] or "", line["high"] or "")
        if line["name"]:
            name = line["name"]
        elif name and limits is not None:
            found[name] = limits
            name = ""
    return found


def _of_yaml_status(text: str) -> dict[str, Limits]:
    try:
        found = {one["name"]: _limits_of_health(one["health"]) for one in _groups_of_yaml(text)}
    except (yaml_documents.YamlError, KeyError, TypeError, ValueError):
        return {}
    return {
        name: limits
        for name, limits in found.items()
        if isinstance(name, str) and limits is not None
    }


def _groups_of_yaml(text: str) -> list[Any]:
    (status,) = yaml_documents.documents(text)
    groups: list[Any] = status["nodeGroups"]
    return groups


def _limits_of_health(health: Any) -> Limits | None:
    low, high = health["minSize"], health["maxSize"]
    is_known = isinstance(low, int | str) and isinstance(high, int | str)
    return _limits(str(low), str(high)) if is_known else None


def _limits(low: str, high: str) -> Limits | None:
    """Return (`low`, `high`) as integers; None if one of them is not a possible number of nodes."""
    is_known = _SIZE.fullmatch(low) and _SIZE.fullmatch(high)
    return (int(low), int(high)) if is_known else None
