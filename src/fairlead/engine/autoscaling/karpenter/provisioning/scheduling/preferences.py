"""Relaxation: removes a pod's preferences and alternative terms, one at a time, until the pod fits.

The order is upstream's: alternatives of required node affinity, preferred pod affinity, preferred
pod anti-affinity, preferred node affinity, ScheduleAnyway constraints. Finally, PreferNoSchedule
taints are tolerated.

upstream: pkg/controllers/provisioning/scheduling/preferences.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import (
    Affinity,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)

_ANY_PREFER_NO_SCHEDULE: Final = Toleration(operator="Exists", effect="PreferNoSchedule")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

Relaxed = tuple[Pod, str]
"""A pod without one of its preferences, and upstream's text about the relaxation step."""


def relaxed(pod: Pod, *, tolerates_prefer_no_schedule: bool) -> Relaxed | None:
    """Relax the pod by one step; return (new pod, upstream's text), or None if no step is left.

    If `tolerates_prefer_no_schedule` is set, the last step adds a toleration of PreferNoSchedule
    taints.
    """
    steps: tuple[Callable[[Pod], Relaxed | None], ...] = (
        without_required_node_affinity_term,
        _without_preferred_pod_affinity,
        _without_preferred_pod_anti_affinity,
        _without_preferred_node_affinity,
        _without_schedule_anyway,
    )
    for step in steps:
        found = step(pod)
        if found is not None:
            return found
    return _with_prefer_no_schedule_tolerated(pod) if tolerates_prefer_no_schedule else None


def without_required_node_affinity_term(pod: Pod) -> Relaxed | None:
    """Remove the first required node affinity term; return (new pod, upstream's text about this).

    Returns None if the pod has at most one such term.
    """
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None or len(required.node_selector_terms) <= 1:
        return None
    first, *rest = required.node_selector_terms
    node_affinity = replace(
        affinity.node_affinity,
        required_during_scheduling_ignored_during_execution=replace(
            required, node_selector_terms=tuple(rest)
        ),
    )
    text = f"removing: spec.affinity.nodeAffinity.{_REQUIRED}[0]={_text(_node_term(first))}"
    return _with_affinity(pod, replace(affinity, node_affinity=node_affinity)), text


def _without_preferred_pod_affinity(pod: Pod) -> Relaxed | None:
    return _without_preferred_pod_term(pod, "pod_affinity", "podAffinity")


def _without_preferred_pod_anti_affinity(pod: Pod) -> Relaxed | None:
    return _without_preferred_pod_term(pod, "pod_anti_affinity", "podAntiAffinity")


def _without_preferred_pod_term(
    pod: Pod, field: Literal["pod_affinity", "pod_anti_affinity"], shown: str
) -> Relaxed | None:
    affinity = pod.spec.affinity
    terms = getattr(affinity, field) if affinity is not None else None
    if affinity is None or terms is None:
        return None
    preferred = terms.preferred_during_scheduling_ignored_during_execution
    if not preferred:
        return None
    heaviest, rest = _heaviest(preferred)
    less = replace(terms, preferred_during_scheduling_ignored_during_execution=rest)
    term = {"weight": heaviest.weight, "podAffinityTerm": _pod_term(heaviest.pod_affinity_term)}
    text = f"removing: spec.affinity.{shown}.{_PREFERRED}[0]={_text(term)}"
    return _with_affinity(pod, replace(affinity, **{field: less})), text


def _without_preferred_node_affinity(pod: Pod) -> Relaxed | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    preferred = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    if not preferred:
        return None
    heaviest, rest = _heaviest(preferred)
    node_affinity = replace(
        affinity.node_affinity, preferred_during_scheduling_ignored_during_execution=rest
    )
    shown = {"weight": heaviest.weight, "preference": _node_term(heaviest.preference)}
    text = f"removing: spec.affinity.nodeAffinity.{_PREFERRED}[0]={_text(shown)}"
    return _with_affinity(pod, replace(affinity, node_affinity=node_affinity)), text


def _without_schedule_anyway(pod: Pod) -> Relaxed | None:
    """Remove the first ScheduleAnyway constraint; return (new pod, upstream's text about this).

    As in upstream, the last constraint of the list moves to the position of the removed one.
    """
    constraints = list(pod.spec.topology_spread_constraints)
    for index, one in enumerate(constraints):
        if one.when_unsatisfiable == "ScheduleAnyway":
            constraints[index] = constraints[-1]
            spec = replace(pod.spec, topology_spread_constraints=tuple(constraints[:-1]))
            text = f"removing: spec.topologySpreadConstraints = {_text(_constraint(one))}"
            return replace(pod, spec=spec), text
    return None


def _with_prefer_no_schedule_tolerated(pod: Pod) -> Relaxed | None:
    if _ANY_PREFER_NO_SCHEDULE in pod.spec.tolerations:
        return None
    return with_prefer_no_schedule_tolerated(pod), "adding: toleration for PreferNoSchedule taints"


def with_prefer_no_schedule_tolerated(pod: Pod) -> Pod:
    """Return the pod with a toleration for all PreferNoSchedule taints."""
    if _ANY_PREFER_NO_SCHEDULE in pod.spec.tolerations:
        return pod
    tolerations = (*pod.spec.tolerations, _ANY_PREFER_NO_SCHEDULE)
    return replace(pod, spec=replace(pod.spec, tolerations=tolerations))


def _heaviest(terms: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the term with the highest weight, and the other terms by descending weight."""
    ordered = sorted(terms, key=lambda one: -one.weight)
    return ordered[0], tuple(ordered[1:])


def _with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


# --- upstream's JSON, whose members have the order of Go's fields ------------------------------


def _text(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _node_term(term: NodeSelectorTerm) -> Json:
    found: Json = as_json(term)
    return found


def _pod_term(term: PodAffinityTerm) -> Json:
    found: Json = {}
    if term.label_selector is not None:
        found["labelSelector"] = _selector(term.label_selector)
    if term.namespaces:
        found["namespaces"] = list(term.namespaces)
    found["topologyKey"] = term.topology_key
    if term.namespace_selector is not None:
        found["namespaceSelector"] = _selector(term.namespace_selector)
    if term.match_label_keys:
        found["matchLabelKeys"] = list(term.match_label_keys)
    if term.mismatch_label_keys:
        found["mismatchLabelKeys"] = list(term.mismatch_label_keys)
    return found


def _constraint(one: TopologySpreadConstraint) -> Json:
    found: Json = {
        "maxSkew": one.max_skew,
        "topologyKey": one.topology_key,
        "whenUnsatisfiable": one.when_unsatisfiable,
    }
    if one.label_selector is not None:
        found["labelSelector"] = _selector(one.label_selector)
    if one.min_domains is not None:
        found["minDomains"] = one.min_domains
    if one.node_affinity_policy is not None:
        found["nodeAffinityPolicy"] = one.node_affinity_policy
    if one.node_taints_policy is not None:
        found["nodeTaintsPolicy"] = one.node_taints_policy
    if one.match_label_keys:
        found["matchLabelKeys"] = list(one.match_label_keys)
    return found


def _selector(selector: LabelSelector) -> Json:
    found: Json = {}
    if selector.match_labels:
        found["matchLabels"] = dict(sorted(selector.match_labels.items()))
    if selector.match_expressions:
        found["matchExpressions"] = [as_json(one) for one in selector.match_expressions]
    return found
