"""Templates: a node as each node group would create it, with the pods that would run on it.

The template of a group comes from the first of these sources that exists:

    1. a good node of the group
    2. a good node of the group in an earlier loop of the autoscaler
    3. the provider's template
    4. any node of the group

A node is good if it has been ready for over a minute, and is neither cordoned nor being deleted.

upstream: processors/nodeinfosprovider/mixed_nodeinfos_processor.go, simulator/node_info_utils.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.nodes.autoscaler_taint import TO_BE_DELETED
from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import DaemonSet, Node, Pod, Toleration
from fairlead.api.pods.facts import controller_of, is_terminating
from fairlead.api.well_known_label import (
    BETA_INSTANCE_TYPE,
    BETA_REGION,
    BETA_ZONE,
    HOSTNAME,
    INSTANCE_TYPE,
    REGION,
    ZONE,
)
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
    NodeGroup,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.node_readiness import (
    node_readiness,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import is_daemon_set_pod, is_mirror_pod
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.node_devices import (
    NO_DEVICES,
    NodeDevices,
    node_devices,
)
from fairlead.engine.autoscaling.cluster_autoscaler.taint import TaintConfig, has_taint
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import is_for_pod
from fairlead.engine.state.pod_info import PodInfo

_TEMPLATE_LABEL: Final = "cluster-autoscaler.kubernetes.io/template-node"
_STABLE_FOR: Final = seconds(60)
_CRITICAL: Final = "system-node-critical"
_DEPRECATED_LABELS: Final = (
    (ZONE, BETA_ZONE),
    (REGION, BETA_REGION),
    (INSTANCE_TYPE, BETA_INSTANCE_TYPE),
)
# Tolerations that the DaemonSet controller adds to its pods (pkg/controller/daemon/util).
_DAEMON_TOLERATIONS: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE),
        ("pid-pressure", NO_SCHEDULE),
        ("unschedulable", NO_SCHEDULE),
    )
)
_HOST_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect=NO_SCHEDULE
)


class Template(Struct, frozen=True):
    """A node as its group would create it, with its static pods and its DaemonSet pods.

    `devices` are the devices of the node from which the template was built.
    """

    node: Node
    pods: tuple[PodInfo, ...]
    devices: NodeDevices = NO_DEVICES

    def add_to(self, snapshot: ClusterSnapshot, name: str = "") -> None:
        """Add a copy of the template to `snapshot` as a node with the name `name`.

        If `name` is "", the copy keeps the name of the template's node.
        """
        name = name or self.node.metadata.name
        snapshot.add_node(_renamed(self.node, name), self.pods, self.devices.copies(name))


class TemplateProvider:
    """Builds the template of each node group.

    The docstring of the module lists the sources of a template. A template that was built from a
    good node (`_is_good`) is kept. Later loops use it if the group has no good node.
    """

    def __init__(
        self,
        provider: CloudProvider,
        snapshot: ClusterSnapshot,
        options: AutoscalingOptions,
        taints: TaintConfig,
    ) -> None:
        """`snapshot` contains the nodes from which templates are built, with their pods."""
        self._provider = provider
        self._snapshot = snapshot
        self._options = options
        self._taints = taints
        self._cache: dict[str, Template] = {}

    def process(
        self, nodes: Sequence[Node], daemon_sets: Sequence[DaemonSet], now: Instant
    ) -> dict[str, Template]:
        """Return {group id: template of the group}.

        `nodes` are the nodes of the cluster. If several nodes of a group are good (`_is_good`), the
        first of them is used.
        """
        found: dict[str, Template] = {}
        good = self._first_by_group(nodes, partial(_is_good, now=now))
        for name, node in good.items():
            found[name] = self._cache[name] = self._of_node(name, node, daemon_sets)
        groups = self._provider.node_groups()
        for group in groups:
            template = found.get(group.id) or self._cache.get(group.id)
            template = template or self._of_provider(group, daemon_sets)
            if template is not None:
                found[group.id] = template
        known = {group.id for group in groups}
        if not known <= found.keys():
            for name, node in self._first_by_group(nodes).items():
                if name not in found:
                    found[name] = self._of_node(name, node, daemon_sets)
        self._cache = {name: one for name, one in self._cache.items() if name in known}
        return found

    def _first_by_group(
        self, nodes: Iterable[Node], is_chosen: Callable[[Node], bool] = lambda _: True
    ) -> dict[str, Node]:
        """Return, for each group, its first node that `is_chosen` accepts."""
        first: dict[str, Node] = {}
        total = len(self._provider.node_groups())
        for node in nodes:
            if len(first) == total:
                break
            group = self._provider.node_group_for(node.spec.provider_id)
            if group is not None and group.id not in first and is_chosen(node):
                first[group.id] = node
        return first

    def _of_node(self, group: str, node: Node, daemon_sets: Sequence[DaemonSet]) -> Template:
        """Return a template from `node`, its mirror pods and its DaemonSet pods.

        A pod is added for each critical DaemonSet that has no pod on `node` but would run there. If
        --force-ds is set, a pod is also added for each such DaemonSet that is not critical.
        """
        info = self._snapshot.node(node.metadata.name)
        running = [] if info is None else self._snapshot.pods_on(info)
        kept = [pod for pod in running if _comes_with_node(pod.pod)]
        present = {_owner_uid(pod.pod) for pod in kept}
        wanted = (
            one
            for one in daemon_sets
            if one.metadata.uid not in present and (self._options.force_ds or _is_critical(one))
        )
        fresh = _renamed(self._sanitized(node), f"template-node-for-{group}")
        claims = (
            claim
            for pod in kept
            for claim in self._snapshot.claims_of(pod.pod)
            if is_for_pod(claim, pod.pod)
        )
        devices = node_devices(self._snapshot.slices_of(node.metadata.name), claims)
        return Template(fresh, (*kept, *self._daemon_pods(fresh, wanted)), devices)

    def _of_provider(self, group: NodeGroup, daemon_sets: Sequence[DaemonSet]) -> Template | None:
        """Return a template: a node from the provider, and the DaemonSet pods that would run on it.

        The template has no devices. Returns None if the provider has no node for `group`.
        """
        node = group.template_node()
        if node is None:
            return None
        labels = dict(node.metadata.labels)
        for stable, deprecated in _DEPRECATED_LABELS:
            if stable in labels:
                labels[deprecated] = labels[stable]
        node = replace(node, metadata=replace(node.metadata, labels=labels))
        fresh = _renamed(self._sanitized(node), f"template-node-for-{group.id}")
        return Template(fresh, tuple(self._daemon_pods(fresh, daemon_sets)))

    def _sanitized(self, node: Node) -> Node:
        cordoned = node.spec.unschedulable and not self._options.scale_from_unschedulable
        taints = self._taints.sanitized(node.spec.taints)
        return replace(node, spec=replace(node.spec, taints=taints, unschedulable=cordoned))

    def _daemon_pods(self, node: Node, daemon_sets: Iterable[DaemonSet]) -> Iterable[PodInfo]:
        for one in daemon_sets:
            pod = _daemon_pod(one, node)
            if pod is not None and _runs_on(pod, node):
                yield self._snapshot.pod_info(pod)


def _renamed(node: Node, name: str) -> Node:
    labels = {**node.metadata.labels, HOSTNAME: name, _TEMPLATE_LABEL: "true"}
    metadata = replace(node.metadata, name=name, uid=name, labels=labels)
    return replace(node, metadata=metadata)


def _is_good(node: Node, now: Instant) -> bool:
    """Return whether the node has been ready for over a minute, and is open for pods.

    A node is open if it is neither cordoned nor being deleted.
    """
    found = node_readiness(node)
    is_stable = found.last_transition + _STABLE_FOR < now
    is_open = not node.spec.unschedulable and not has_taint(node, TO_BE_DELETED)
    return found.is_ready and is_stable and is_open


def _comes_with_node(pod: Pod) -> bool:
    return (is_mirror_pod(pod) or is_daemon_set_pod(pod)) and not is_terminating(pod)


def _owner_uid(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid


def _is_critical(daemon_set: DaemonSet) -> bool:
    spec = daemon_set.spec.template.get("spec") or {}
    is_critical: bool = spec.get("priorityClassName") == _CRITICAL
    return is_critical and spec.get("preemptionPolicy") != "Never"


def _daemon_pod(daemon_set: DaemonSet, node: Node) -> Pod | None:
    """Return the pod that the DaemonSet would create on `node`.

    Returns None if the DaemonSet's pod template is invalid.
    """
    meta, template = daemon_set.metadata, daemon_set.spec.template
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
    }
    name = f"{meta.name}-pod-{node.metadata.name}"
    metadata = {
        **(template.get("metadata") or {}),
        "name": name,
        "namespace": meta.namespace,
        "uid": f"{meta.namespace}-{name}",
        "ownerReferences": [owner],
    }
    spec = {**(template.get("spec") or {}), "nodeName": node.metadata.name}
    try:
        pod = decode_as(Pod, without_nulls({"metadata": metadata, "spec": spec}))
    except DecodeError:
        return None
    added = _DAEMON_TOLERATIONS
    if pod.spec.host_network:
        added = (*added, _HOST_NETWORK_TOLERATION)
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *added)))


def _runs_on(pod: Pod, node: Node) -> bool:
    """Return whether the node selector, node affinity and taints admit `pod` to `node`."""
    if not required_node_affinity_matches(pod.spec, node.metadata.labels, node.metadata.name):
        return False
    effects = (NO_SCHEDULE, NO_EXECUTE)
    return find_untolerated(node.spec.taints, pod.spec.tolerations, effects) is None
