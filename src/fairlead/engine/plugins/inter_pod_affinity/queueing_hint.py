"""QueueingHints of InterPodAffinity.

As upstream, namespace selectors are matched against empty labels here: a term that selects
namespaces by label is not woken by pods in them, and waits for another event or the regular flush.

upstream: interpodaffinity/plugin.go: isSchedulableAfterPodChange, isSchedulableAfterNodeChange
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.api.objects import Node
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, TermKind
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_info import PodInfo

EVENTS: Final = frozenset(
    {
        EventKind.ASSIGNED_POD_ADD,
        EventKind.ASSIGNED_POD_LABEL,
        EventKind.ASSIGNED_POD_DELETE,
        EventKind.POD_LABEL,
        EventKind.NODE_ADD,
        EventKind.NODE_LABEL,
    }
)
Labels = Mapping[str, str]
Terms = Sequence[AffinityTerm]


def is_worth_a_try(pod: PodInfo, pod_index: PodIndex, event: ClusterEvent) -> bool:
    """Return True if `event`, one of EVENTS, may change the verdict for `pod`."""
    near = _terms(pod_index, pod, TermKind.REQUIRED_AFFINITY)
    apart = _terms(pod_index, pod, TermKind.REQUIRED_ANTI_AFFINITY)
    match event:
        case ClusterEvent(kind=EventKind.POD_LABEL):
            return True
        case ClusterEvent(old=PodInfo() as old, new=PodInfo() as new):
            before, after = pod_index.pod_class_of(old), pod_index.pod_class_of(new)
            attracts = _match_all(near, after) and not _match_all(near, before)
            return attracts or (_match_all(apart, before) and not _match_all(apart, after))
        case ClusterEvent(old=None, new=PodInfo() as new):
            return _match_all(near, pod_index.pod_class_of(new))
        case ClusterEvent(old=PodInfo() as gone):
            theirs = _terms(pod_index, gone, TermKind.REQUIRED_ANTI_AFFINITY)
            repelled = _match_all(apart, pod_index.pod_class_of(gone))
            return repelled or _match_all(theirs, pod_index.pod_class_of(pod))
        case ClusterEvent(old=Node() as before_node, new=Node() as after_node):
            return _moves(near, apart, before_node.metadata.labels, after_node.metadata.labels)
        case ClusterEvent(new=Node() as new_node):
            labels = new_node.metadata.labels
            return bool(apart) or any(term.topology_key in labels for term in near)
        case _:
            return True


def _terms(pod_index: PodIndex, pod: PodInfo, kind: TermKind) -> list[AffinityTerm]:
    return [placed.term for placed in pod_index.terms_of(pod) if placed.term.kind is kind]


def _match_all(terms: Terms, pods: PodClass) -> bool:
    return bool(terms) and all(term.matches(pods, {}) for term in terms)


def _moves(near: Terms, apart: Terms, before: Labels, after: Labels) -> bool:
    """Return True if a node enters a domain with affinity or leaves one with anti-affinity."""
    entered = (term.topology_key for term in near if term.topology_key in after)
    left = (term.topology_key for term in apart if term.topology_key in before)
    return any(before.get(key) != after.get(key) for key in (*entered, *left))
