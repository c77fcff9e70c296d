"""CrossNodePreemption: makes a pod schedulable by preempting pods on other nodes, too.

Kubernetes' preemption evaluates one node at a time. If a pod has zone-wide anti-affinity to another
pod, and the other pod runs on another node of the zone, the pod stays Pending, although preempting
the other pod would help. If DefaultPreemption has found no candidate, this plugin tries the
following for each node:

    1  opponents   the lower-priority pods on the node, and the lower-priority pods on other nodes
                   that exclude the pod or are excluded by it (required anti-affinity)
    2  trial       remove all of them: does the pod fit the node now?
    3  reprieve    add them again one by one, the most important first, while the pod still fits
    4  pick        the node with the best victims, by DefaultPreemption's order

At most `nodesMax` nodes are tried, and nodes with more than `podsMax` possible victims are skipped.
While the victims terminate, the Filter rejects the nodes of the zone for lower-priority pods that
the pod's anti-affinity excludes. Otherwise the victims' replacements would be placed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from fairlead import plugin
from fairlead.api.objects import Namespace, PodAffinityTerm
from fairlead.api.pods.facts import preempts_lower
from fairlead.api.selector import selector_matches

NEVER = plugin.unschedulable("cross-node preemption: preemptionPolicy is Never")
WAITING = plugin.unschedulable("cross-node preemption: earlier victims are still leaving")
NO_HELP = plugin.unschedulable("cross-node preemption: no pods on other nodes are in the way")
HELD = plugin.unresolvable("node(s) kept free for a pod of higher priority")

Place = tuple[plugin.PodInfo, plugin.NodeInfo]


@dataclass(frozen=True, slots=True)
class Held:
    """The topology domains, by key and value, from which the evaluated pod is excluded."""

    domains: frozenset[tuple[str, str]]


class CrossNodePreemption:
    """A PostFilter that preempts pods, and a Filter that keeps replacements out."""

    name = "CrossNodePreemption"
    events = frozenset({plugin.EventKind.ASSIGNED_POD_DELETE, plugin.EventKind.ASSIGNED_POD_ADD})

    class Args(msgspec.Struct, frozen=True, rename="camel"):
        """The limits of the search."""

        nodes_max: int = 100
        pods_max: int = 500

    def __init__(self, handle: plugin.Handle, args: Args) -> None:
        """Read the cluster and run trials through `handle`."""
        self._handle = handle
        self._args = args

    # --- keeping replacements out ------------------------------------------------------------

    def pre_filter(self, state: plugin.CycleState, pod: plugin.PodInfo) -> plugin.Status | None:
        """Store the domains from which `pod` is excluded; return SKIP if there are none."""
        domains = frozenset(self._held_against(pod))
        if not domains:
            return plugin.SKIP
        state.write(Held(domains))
        return None

    def _held_against(self, pod: plugin.PodInfo) -> Iterator[tuple[str, str]]:
        nominator = self._handle.nominator
        for name in nominator.nodes():
            node = self._handle.cluster.table.find(name)
            if node is None:
                continue
            for promised in nominator.pods_on(name):
                if promised.priority > pod.priority:
                    for key in self._keys_apart(promised, pod):
                        yield key, node.labels.get(key, "")

    def filter(
        self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo
    ) -> plugin.Status | None:
        """Reject nodes in the domains from which the pod is excluded."""
        held = state.read(Held).domains
        return HELD if any(node.labels.get(key) == value for key, value in held) else None

    # --- making room -----------------------------------------------------------------------

    def post_filter(
        self,
        state: plugin.CycleState,
        pod: plugin.PodInfo,
        diagnosis: plugin.Diagnosis,
    ) -> plugin.PostFilterResult:
        """Nominate the node with the best victims, which may be on several nodes."""
        if not preempts_lower(pod.pod):
            return plugin.PostFilterResult(NEVER)
        opponents = list(self._opponents(pod))
        if self._is_waiting(pod, opponents):
            return plugin.PostFilterResult(WAITING)
        rows = diagnosis.rows_with(plugin.Code.UNSCHEDULABLE)[: self._args.nodes_max]
        nodes = (diagnosis.table.at(row) for row in rows.tolist() if opponents)
        tried = (self._candidate(state, pod, node, opponents) for node in nodes)
        found = [candidate for candidate in tried if candidate is not None]
        if not found:
            return plugin.PostFilterResult(NO_HELP, nominated_node="")
        best = min(found, key=_cost)
        return plugin.PostFilterResult(
            plugin.SUCCESS,
            nominated_node=best.node.name,
            victims=best.victims,
            pdb_violations=best.pdb_violations,
            rule="cross-node preemption",
            candidates=len(found),
        )

    def _candidate(
        self,
        state: plugin.CycleState,
        pod: plugin.PodInfo,
        node: plugin.NodeInfo,
        opponents: list[tuple[Place, list[str]]],
    ) -> plugin.Candidate | None:
        """Return `node` with the victims whose removal lets the pod fit; None if there are none."""
        rivals = {
            other.id: (other, home) for (other, home), keys in opponents if _near(node, home, keys)
        }
        if all(home is node for _, home in rivals.values()):
            return None  # DefaultPreemption has already tried this node
        own = (other for other in node.pods.values() if other.priority < pod.priority)
        rivals |= {other.id: (other, node) for other in own}
        if len(rivals) > self._args.pods_max:
            return None
        ordered = sorted((other for other, _ in rivals.values()), key=_importance)
        with self._handle.trial(state, pod) as trial:
            for other, home in rivals.values():
                trial.remove(other, home)
            if trial.verdict(node) is not None:
                return None
            budgets = self._handle.cluster.budgets()
            breaching, others = plugin.split_by_budget(ordered, budgets)
            lost = []
            for other in (*breaching, *others):
                trial.add(*rivals[other.id])
                if trial.verdict(node) is not None:
                    trial.remove(*rivals[other.id])
                    lost.append(other)
        breached = sum(other in breaching for other in lost)
        return plugin.Candidate(node, tuple(sorted(lost, key=_importance)), breached)

    def _is_waiting(self, pod: plugin.PodInfo, opponents: list[tuple[Place, list[str]]]) -> bool:
        """Return whether victims of an earlier attempt are still terminating."""
        node = self._handle.cluster.table.find(pod.pod.status.nominated_node_name)
        return node is not None and any(
            other.terminating and _near(node, home, keys) for (other, home), keys in opponents
        )

    # --- anti-affinity ---------------------------------------------------------------------

    def _opponents(self, pod: plugin.PodInfo) -> Iterator[tuple[Place, list[str]]]:
        """Yield ((pod, its node), topology keys) for each lower-priority opponent of `pod`.

        An opponent is a pod that excludes `pod` or that `pod` excludes.
        """
        for home in self._handle.cluster.table.nodes():
            for other in home.pods.values():
                if other.priority < pod.priority and (keys := self._keys_apart(pod, other)):
                    yield (other, home), keys

    def _keys_apart(self, one: plugin.PodInfo, other: plugin.PodInfo) -> list[str]:
        """Return the topology keys of the anti-affinity by which one pod excludes the other."""
        return [
            term.topology_key
            for owner, target in ((one, other), (other, one))
            for term in _anti_affinity(owner)
            if self._means(term, owner, target)
        ]

    def _means(self, term: PodAffinityTerm, owner: plugin.PodInfo, target: plugin.PodInfo) -> bool:
        selected = term.namespace_selector
        if target.namespace not in (term.namespaces or (owner.namespace,) * (selected is None)):
            home = self._handle.cluster.related.get(Namespace, target.namespace)
            labels = {} if home is None else home.metadata.labels
            if not selector_matches(selected, labels):
                return False
        return selector_matches(term.label_selector, target.labels)


def _anti_affinity(pod: plugin.PodInfo) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.shape.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _near(node: plugin.NodeInfo, other: plugin.NodeInfo, keys: list[str]) -> bool:
    """Return whether both nodes are in the same domain of any of `keys`."""
    return any(key in node.labels and node.labels[key] == other.labels.get(key) for key in keys)


def _importance(pod: plugin.PodInfo) -> tuple[int, int, str]:
    return (-pod.priority, pod.start, pod.key)


def _cost(candidate: plugin.Candidate) -> tuple[int, int, int, str]:
    return (
        candidate.pdb_violations,
        candidate.highest_priority,
        candidate.priority_sum,
        candidate.node.name,
    )
