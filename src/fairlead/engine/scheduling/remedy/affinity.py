"""Remedies for affinity: label the node, remove a requirement, or delete the conflicting pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairlead.api.nodes.node_selector import required_node_affinity
from fairlead.api.objects import (
    Affinity,
    Node,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from fairlead.api.selector import requirement_matches
from fairlead.api.well_known_label import MACHINE_FACTS, is_provider_label
from fairlead.engine.core.status import Status
from fairlead.engine.framework.extension_point import original_of
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.inter_pod_affinity.affinity_terms import NamespaceLabels
from fairlead.engine.plugins.node_affinity import NodeAffinity
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_class import PodLocations
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, TermKind
from fairlead.engine.state.pod_info import PodInfo

replace = msgspec.structs.replace
_BLOCKERS_MAX = 200
_ANTI_AFFINITY: Final = TermKind.REQUIRED_ANTI_AFFINITY


def propose_for_node_affinity(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield changes of the node's labels, then changes that drop requirements of the pod.

    The nodeSelector and each required term are considered separately. The terms come from the pod's
    node affinity and from the profile's addedAffinity. A label change is proposed if the node fails
    exactly one requirement of a term, or exactly one entry of the nodeSelector. No label change is
    proposed for the operators Gt and Lt, or for terms with matchFields. A label that states a fact
    about the machine, such as its zone, is never changed.
    """
    spec = pod.pod.spec
    missing = [(k, v) for k, v in spec.node_selector.items() if node.labels.get(k) != v]
    if len(missing) == 1 and not _is_known_fact(node, missing[0][0]):
        key, value = missing[0]
        yield RemedyChange(
            f"label node {node.name} {key}={value}", node=labelled(node.node, key, value)
        )
    plugin = original_of(framework.find("NodeAffinity"))
    enforced = plugin.enforced_terms if isinstance(plugin, NodeAffinity) else ()
    for term in (*required_terms(pod.pod), *enforced):
        unmet = [r for r in term.match_expressions if not requirement_matches(r, node.labels)]
        if len(unmet) == 1 and not term.match_fields and not _is_known_fact(node, unmet[0].key):
            yield from _satisfy(node.node, unmet[0])
    if missing:
        selector = {k: v for k, v in spec.node_selector.items() if (k, v) not in missing}
        keys = ", ".join(key for key, _ in missing)
        what = f"drop {keys} from the pod's nodeSelector"
        yield RemedyChange(what, pod=replace(pod.pod, spec=replace(spec, node_selector=selector)))
    if spec.affinity is not None and spec.affinity.node_affinity is not None:
        free = replace(spec.affinity, node_affinity=None)
        what = "drop the pod's node affinity"
        yield RemedyChange(what, pod=with_affinity(pod.pod, free))


def _is_known_fact(node: NodeInfo, key: str) -> bool:
    """Return whether the label `key` states a fact about the machine of `node`.

    Such a label must not be changed: a different value would be wrong, and the kubelet would
    correct the value at its next start (kubelet_node_status.go: updateDefaultLabels). A label of a
    cloud provider must not be added either: the label alone would not make the node a spot machine
    or a member of a node pool.
    """
    return is_provider_label(key) or (key in MACHINE_FACTS and key in node.labels)


def required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    """Return the terms of the node affinity that `pod` requires."""
    required = required_node_affinity(pod.spec)
    return required.node_selector_terms if required is not None else ()


def _satisfy(node: Node, requirement: NodeSelectorRequirement) -> Iterator[RemedyChange]:
    key, name = requirement.key, node.metadata.name
    match requirement.operator:
        case "In" if requirement.values:
            value = requirement.values[0]
            yield RemedyChange(f"label node {name} {key}={value}", node=labelled(node, key, value))
        case "Exists":
            yield RemedyChange(f"label node {name} {key}=", node=labelled(node, key, ""))
        case "DoesNotExist" | "NotIn":
            yield RemedyChange(f"remove label {key} from node {name}", node=unlabelled(node, key))
        case _:
            pass


def labelled(node: Node, key: str, value: str) -> Node:
    """Return `node` with the label `key`=`value`."""
    labels = {**node.metadata.labels, key: value}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def unlabelled(node: Node, key: str) -> Node:
    """Return `node` without the label `key`."""
    labels = {k: v for k, v in node.metadata.labels.items() if k != key}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    """Return `pod` with its affinity replaced by `affinity`."""
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def delete_conflicting(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield one deletion for each pod that keeps `pod` off `node` by anti-affinity.

    The required anti-affinity term may belong to `pod` or to the other pod.
    """
    for other in _blockers(framework, pod, node):
        yield deleting([other], f" on node {framework.cluster.node_of(other)}")


def drop_pod_affinity(
    _framework: Framework, pod: PodInfo, _node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield changes of `pod` that drop terms of its pod affinity and anti-affinity.

    Yields one change for each required term, which drops only this term. The last change drops all
    terms.
    """
    yield from _drop_terms(pod.pod)
    if pod.pod.spec.affinity is not None:
        free = replace(pod.pod.spec.affinity, pod_affinity=None, pod_anti_affinity=None)
        what = "drop the pod's affinity and anti-affinity to other pods"
        yield RemedyChange(what, pod=with_affinity(pod.pod, free))


def _blockers(framework: Framework, pod: PodInfo, node: NodeInfo) -> list[PodInfo]:
    """Return the pods that violate required anti-affinity, the least important pod first.

    These pods are in the same topology domain as `node`. Either an anti-affinity term of `pod`
    matches them, or one of their anti-affinity terms matches `pod`.
    """
    cluster = framework.cluster
    table, index = cluster.table, cluster.table.pod_index
    namespaces = NamespaceLabels(cluster.related)
    namespaces.refresh()
    found: dict[str, PodInfo] = {}

    def nearby(term: AffinityTerm, where: PodLocations) -> Iterator[PodInfo]:
        """Yield all pods on those nodes in `where` that share a topology domain with `node`.

        `term` names the topologyKey. `node` is an argument of the enclosing function `_blockers`.
        """
        domain = node.labels.get(term.topology_key)
        for row in where.rows if domain is not None else ():
            other = table.at(row)
            if other.labels.get(term.topology_key) == domain:
                yield from other.pods.values()

    for term in (one.term for one in index.terms_of(pod) if one.term.kind is _ANTI_AFFINITY):
        for pods in index.classes_matching(term, namespaces.of):
            near = nearby(term, pods.where)
            found |= {other.key: other for other in near if index.pod_class_of(other) is pods}
    own = index.pod_class_of(pod)
    for placed in index.terms_matching(own, (_ANTI_AFFINITY,), namespaces.of(pod.namespace)):
        near = nearby(placed.term, placed.where)
        found |= {other.key: other for other in near if placed in index.terms_of(other)}
    return sorted(found.values(), key=importance, reverse=True)[:_BLOCKERS_MAX]


def _drop_terms(pod: Pod) -> Iterator[RemedyChange]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for field, kind in (("pod_anti_affinity", "anti-affinity"), ("pod_affinity", "affinity")):
        terms = getattr(affinity, field)
        required = "required_during_scheduling_ignored_during_execution"
        for i, term in enumerate(getattr(terms, required, ())):
            kept = tuple(t for j, t in enumerate(getattr(terms, required)) if j != i)
            changed = replace(affinity, **{field: replace(terms, **{required: kept})})
            what = f"drop the pod's required {kind} on {term.topology_key}"
            yield RemedyChange(what, pod=with_affinity(pod, changed))
