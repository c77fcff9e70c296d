"""Finds the autoscalers of a snapshot: their containers, and the status of Cluster Autoscaler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import AKS_AGENT_POOL, GKE_NODE_POOL
from fairlead.whatif.snapshot.samples import samples

STATUS: Final = "cluster-autoscaler-status"
"""The ConfigMap to which Cluster Autoscaler writes its status."""
STATUS_NAMESPACE: Final = "kube-system"
"""The namespace of STATUS, unless the flag --namespace of Cluster Autoscaler names another."""
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
# The flags that these providers set differently from upstream's defaults. Users of AKS can choose
# other values. Source for AKS: default values of the cluster autoscaler profile. Source for GKE:
# "About GKE cluster autoscaling", sections "Balancing across zones" and "Considering Pod scheduling
# and disruption".
_HOSTED: Final = (
    ("AKS", AKS_AGENT_POOL, ("--expander=random", "--skip-nodes-with-local-storage=false")),
    (
        "GKE",
        GKE_NODE_POOL,
        ("--balance-similar-node-groups=true", "--skip-nodes-with-local-storage=false"),
    ),
)


class _VariableForm(msgspec.Struct):
    name: str = ""
    value: str = ""


class InstalledContainer(msgspec.Struct):
    """A container of a Deployment: its image, command line and environment variables."""

    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_VariableForm] | None = None

    @property
    def command_line(self) -> tuple[str, ...]:
        """The words of `command` and `args`."""
        return (*(self.command or ()), *(self.args or ()))


class _PodSpecForm(msgspec.Struct):
    containers: list[InstalledContainer] = []


class _PodTemplateForm(msgspec.Struct):
    spec: _PodSpecForm = msgspec.field(default_factory=_PodSpecForm)


def installed_containers(
    manifests: Iterable[Manifest],
) -> Iterator[tuple[Manifest, InstalledContainer]]:
    """Yield (Deployment, container) for each container of each Deployment."""
    for manifest in samples(manifests):
        if manifest.kind.kind != "Deployment":
            continue
        for container in _containers(manifest.pod_template or {}):
            yield manifest, container


def _containers(template: Json) -> list[InstalledContainer]:
    try:
        return msgspec.convert(template, _PodTemplateForm).spec.containers
    except msgspec.ValidationError:  # refused later, when the object is loaded
        return []


def installed_flags(manifests: Iterable[Manifest]) -> tuple[str, ...] | None:
    """Return the command line of the dump's Cluster Autoscaler; None without Cluster Autoscaler."""
    for _, container in installed_containers(manifests):
        if CLUSTER_AUTOSCALER in container.image:
            return container.command_line
    return None


def autoscaler_words(autoscaler: str, deployment: Json) -> list[tuple[str, ...]]:
    """Return the settings of each container of `deployment` that runs `autoscaler`.

    Such a container has an image whose name contains `autoscaler`. The settings of Cluster
    Autoscaler are its command line. The settings of Karpenter also include environment variables,
    here as NAME=value.
    """
    template = (deployment.get("spec") or {}).get("template") or {}
    found = []
    for one in _containers(template):
        if autoscaler in one.image:
            environment = () if autoscaler == CLUSTER_AUTOSCALER else one.env or ()
            stated = (f"{variable.name}={variable.value}" for variable in environment)
            found.append((*one.command_line, *sorted(stated)))
    return found


def deployments_of(autoscaler: str, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Yield the Deployments whose image has the name `autoscaler`, such as `karpenter`."""
    for manifest, container in installed_containers(manifests):
        if autoscaler in container.image:
            yield manifest


def stopped_notes(autoscaler: str, manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return a note if the cluster has `autoscaler`, such as `karpenter`, but no ready pod of it.

    A Deployment without status, such as one that a user has written, counts as ready. Return () if
    there is nothing to note.
    """
    found = list(deployments_of(autoscaler, manifests))
    if not found or not all(map(_has_no_ready_pod, found)):
        return ()
    names = sorted({f"{one.ref.namespace}/{one.ref.name}" for one in found})
    have = f"Deployment {listed(names)} has"
    if len(names) > 1:
        have = f"Deployments {listed(names)} have"
    effect = "so the autoscaler of the cluster adds and removes no nodes"
    return (f"{have} no ready pod in the dump, {effect}.",)


def _has_no_ready_pod(manifest: Manifest) -> bool:
    value = manifest.value
    spec, status = value.get("spec") or {}, value.get("status") or {}
    return spec.get("replicas") == 0 or (bool(status) and not status.get("readyReplicas"))


def hosted_flags(manifests: Iterable[Manifest]) -> tuple[str, tuple[str, ...]]:
    """Return (AKS or GKE, the flags with which the provider runs Cluster Autoscaler by default).

    The result is ("", ()) if the cluster is of another provider.
    """
    for one in samples(manifests):
        if one.kind is NODE and isinstance(one.labels, dict):
            for provider, label, flags in _HOSTED:
                if label in one.labels:
                    return provider, flags
    return "", ()


def has_status(manifests: Iterable[Manifest]) -> bool:
    """Return whether a Cluster Autoscaler has written its status to the cluster."""
    return any(map(is_status, samples(manifests)))


def is_status(manifest: Manifest) -> bool:
    """Return whether `manifest` is the ConfigMap STATUS."""
    return manifest.ref.name == STATUS and manifest.ref.kind == "ConfigMap"
