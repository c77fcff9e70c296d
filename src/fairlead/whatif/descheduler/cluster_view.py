"""ClusterView: the nodes and running pods of a snapshot, as the descheduler's strategies see them.

As in upstream, the view does not change during a run: evicted pods stay on their nodes.

upstream: pkg/descheduler/node/node.go, pkg/descheduler/pod/pods.go
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import Node, Pod, PodAffinityTerm
from fairlead.api.pods.facts import condition, is_terminal
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import parse_quantity
from fairlead.api.selector import selector_matches

PODS: Final = "pods"
_BLOCKING: Final = (NO_SCHEDULE, NO_EXECUTE)
_UNITS: Final = {"cpu": 1_000_000}  # a thousandth of a core in nano-units
_WHOLE: Final = 1_000_000_000


class ClusterView:
    """Nodes and pods of a cluster.

    `nodes` are the Ready nodes that the policy selects, sorted by name. `pods` are all pods
    with a node, even if that node is not in `nodes`, sorted by namespace and name.
    """

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        """Store the Ready nodes among `nodes`, and the pods among `pods` that have a node."""
        self.nodes = sorted(filter(_is_ready, nodes), key=lambda node: node.metadata.name)
        self.by_name = {node.metadata.name: node for node in self.nodes}
        self.pods = sorted((pod for pod in pods if pod.spec.node_name), key=_listing_order)
        self._on: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            self._on[pod.spec.node_name].append(pod)
        self._requests: dict[int, dict[str, int]] = {}
        self._requested: dict[str, dict[str, int]] = {}

    def on(self, node: Node) -> Sequence[Pod]:
        """Return the pods on `node` that have not ended."""
        return [pod for pod in self._on[node.metadata.name] if not is_terminal(pod)]

    def ended_on(self, node: Node) -> Sequence[Pod]:
        """Return the pods on `node` that have ended."""
        return [pod for pod in self._on[node.metadata.name] if is_terminal(pod)]

    def fits_another_node(self, pod: Pod, nodes: Iterable[Node]) -> bool:
        """Return whether `pod` fits one of `nodes` other than the node it runs on."""
        own = pod.spec.node_name
        return any(self._fits(pod, node) for node in nodes if node.metadata.name != own)

    def fits_any_node(self, pod: Pod) -> bool:
        """Return whether the node of `pod` admits `pod`, or whether `pod` fits another node.

        A node admits `pod` if the node is not cordoned and `may_run_on` returns True. `pod` fits
        another node if that node admits `pod` and has room for its requests. The anti-affinity of
        `pod` must not exclude any pod on the node.
        """
        own = self.by_name.get(pod.spec.node_name)
        if own is not None and not own.spec.unschedulable and may_run_on(pod, own):
            return True
        return self.fits_another_node(pod, self.nodes)

    def _fits(self, pod: Pod, node: Node) -> bool:
        # upstream: node.go:NodeFit
        if node.spec.unschedulable or not may_run_on(pod, node) or not self._has_room(pod, node):
            return False
        terms = anti_affinity_terms(pod)
        return not (terms and self.conflicting(pod, self.on(node)))

    def _has_room(self, pod: Pod, node: Node) -> bool:
        used, wanted = self.requested(node), {**self.requests(pod), PODS: 1}
        return all(
            used.get(name, 0) + amount <= allocatable_amount(node, name)
            for name, amount in wanted.items()
        )

    def requests(self, pod: Pod) -> Mapping[str, int]:
        """Return the requests of `pod`: cpu in thousandths, all other resources in whole units."""
        found = self._requests.get(id(pod))
        if found is None:
            found = self._requests[id(pod)] = pod_requests(pod, existing=True)
        return found

    def requested(self, node: Node) -> Mapping[str, int]:
        """Return the total requests of the pods on `node`, by resource.

        The amount of the resource `pods` is the number of these pods.
        """
        found = self._requested.get(node.metadata.name)
        if found is None:
            pods = self.on(node)
            found = self._requested[node.metadata.name] = defaultdict(int)
            for pod in pods:
                for name, amount in self.requests(pod).items():
                    found[name] += amount
            found[PODS] = len(pods)
        return found

    def conflicting(self, pod: Pod, others: Iterable[Pod]) -> Pod | None:
        """Return a pod of `others` that the anti-affinity of `pod` excludes; None if there is none.

        Only pods in the same topology domain as `pod` count.

        upstream: pkg/utils/predicates.go:CheckPodsWithAntiAffinityExist
        """
        own = self.by_name.get(pod.spec.node_name)
        terms = anti_affinity_terms(pod)
        for other in others:
            node = self.by_name.get(other.spec.node_name)
            if other is pod or node is None or own is None:
                continue
            for term in terms:
                key = term.topology_key
                value = own.metadata.labels.get(key)
                if (
                    value is not None
                    and node.metadata.labels.get(key) == value
                    and _selects(term, pod, other)
                ):
                    return other
        return None


def _listing_order(pod: Pod) -> tuple[str, str]:
    # upstream's order is that of a map; this one is the same for each form of a dump
    return pod.metadata.namespace, pod.metadata.name


def may_run_on(pod: Pod, node: Node) -> bool:
    """Return whether the node's labels and taints admit `pod`."""
    labels, name = node.metadata.labels, node.metadata.name
    return (
        required_node_affinity_matches(pod.spec, labels, name)
        and find_untolerated(node.spec.taints, pod.spec.tolerations, _BLOCKING) is None
    )


def anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """Return the required terms of the pod's anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _selects(term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    namespaces: Collection[str] = term.namespaces or (pod.metadata.namespace,)
    return other.metadata.namespace in namespaces and selector_matches(
        term.label_selector, other.metadata.labels
    )


def _is_ready(node: Node) -> bool:
    found = condition(node, "Ready")
    return found is None or found.status == "True"


def allocatable_amount(node: Node, name: str) -> int:
    """Return the allocatable amount of `name`: cpu in thousandths, all others in whole units.

    upstream: node.go uses the capacity if a node has no allocatable amounts
    """
    amounts = node.status.allocatable or node.status.capacity
    text = amounts.get(name)
    return 0 if text is None else parse_quantity(text).nano // _UNITS.get(name, _WHOLE)
