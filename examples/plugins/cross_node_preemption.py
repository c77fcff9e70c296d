"""CrossNodePreemption: make room for a pod by removing pods from other nodes than its own.

Kubernetes' preemption looks at one node at a time. A pod that must not share its zone with another
one stays Pending where that one is in the zone but on another node: removing it would help, and
nobody tries. This plugin does, when DefaultPreemption has found nothing:

    1  opponents   lower-priority pods that the pod repels, or that repel it (required
                   anti-affinity), wherever they are, and with them the pods on the node itself
    2  trial       all of them gone: does the pod fit the node now?
    3  reprieve    let them back one by one, the most important first, while the pod still fits
    4  pick        the node whose victims cost least, by DefaultPreemption's order

At most `nodesMax` nodes are tried, and none for which more than `podsMax` pods come into question.
While the victims leave, pods of lower priority that the pod repels are kept out of its zone, or
their replacements would be in its way again.
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
    """Topology domains, by key and value, that are kept free of the pod."""

    domains: frozenset[tuple[str, str]]


class CrossNodePreemption:
    """PostFilter, and a Filter that holds what it has won."""

    name = "CrossNodePreemption"
    events = frozenset({plugin.EventKind.ASSIGNED_POD_DELETE, plugin.EventKind.ASSIGNED_POD_ADD})

    class Args(msgspec.Struct, frozen=True, rename="camel"):
        """Bounds of the search."""

        nodes_max: int = 100
        pods_max: int = 500

    def __init__(self, handle: plugin.Handle, args: Args) -> None:
        """Reads the cluster and makes trials on it."""
        self._handle = handle
        self._args = args

    # --- holding ---------------------------------------------------------------------------

    def pre_filter(self, state: plugin.CycleState, pod: plugin.PodInfo) -> plugin.Status | None:
        """Nearly every pod is skipped: it costs nothing that nobody was nominated."""
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
        """Keeps the pod out of what is held against it."""
        held = state.read(Held).domains
        return HELD if any(node.labels.get(key) == value for key, value in held) else None

    # --- making room -----------------------------------------------------------------------

    def post_filter(
        self,
        state: plugin.CycleState,
        pod: plugin.PodInfo,
        diagnosis: plugin.Diagnosis,
    ) -> plugin.PostFilterResult:
        """Nominate the node whose victims, wherever they are, cost least."""
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
        """What must go for the pod to fit `node`; None if that does not help."""
        rivals = {
            other.id: (other, home) for (other, home), keys in opponents if _near(node, home, keys)
        }
        if all(home is node for _, home in rivals.values()):
            return None  # DefaultPreemption has tried that
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
        """Whether victims of an earlier attempt are on their way out."""
        node = self._handle.cluster.table.find(pod.pod.status.nominated_node_name)
        return node is not None and any(
            other.terminating and _near(node, home, keys) for (other, home), keys in opponents
        )

    # --- who is in whose way ---------------------------------------------------------------

    def _opponents(self, pod: plugin.PodInfo) -> Iterator[tuple[Place, list[str]]]:
        """Pods of lower priority that cannot be near `pod`, and the topology keys of "near"."""
        for home in self._handle.cluster.table.nodes():
            for other in home.pods.values():
                if other.priority < pod.priority and (keys := self._keys_apart(pod, other)):
                    yield (other, home), keys

    def _keys_apart(self, one: plugin.PodInfo, other: plugin.PodInfo) -> list[str]:
        """The topology keys by which the two must be apart, by either pod's anti-affinity."""
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
    """Whether the nodes are in one domain of any of `keys`."""
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
