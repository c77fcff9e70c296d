"""Merges matchLabelKeys and mismatchLabelKeys into the label selectors in a pod's spec.

Each key is the name of a label. When a pod is created, the server looks up the pod's own value of
this label. The server adds a requirement for this value to the stored labelSelector. Readers of the
pod then need only the selector. If a pod in a dump already has such a requirement, the requirement
is not added again.

upstream: pkg/registry/core/pod/strategy.go:mutatePodAffinity, mutateTopologySpreadConstraints
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.json import Json

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def with_label_keys(pod: Json) -> Json:
    """Return `pod` with matchLabelKeys and mismatchLabelKeys merged into its label selectors."""
    spec = pod["spec"]
    affinity, constraints = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not affinity and not constraints:
        return pod
    labels = pod["metadata"].get("labels", {})

    def merged(term: Json) -> Json:
        return _merged(term, labels)

    completed = {**spec}
    if affinity:
        completed["affinity"] = _affinity(affinity, merged)
    if constraints:
        completed["topologySpreadConstraints"] = [merged(constraint) for constraint in constraints]
    return pod if completed == spec else {**pod, "spec": completed}


def _affinity(affinity: Json, merged: Callable[[Json], Json]) -> Json:
    completed = {**affinity}
    for kind in ("podAffinity", "podAntiAffinity"):
        if kind in affinity:
            completed[kind] = _terms(affinity[kind], merged)
    return completed


def _terms(terms: Json, merged: Callable[[Json], Json]) -> Json:
    completed = {**terms}
    if _REQUIRED in terms:
        completed[_REQUIRED] = [merged(term) for term in terms[_REQUIRED]]
    if _PREFERRED in terms:
        completed[_PREFERRED] = [
            {**weighted, "podAffinityTerm": merged(weighted["podAffinityTerm"])}
            for weighted in terms[_PREFERRED]
        ]
    return completed


def _merged(term: Json, labels: Json) -> Json:
    """Return `term` with its matchLabelKeys and mismatchLabelKeys merged into its selector.

    `term` is an affinity term or a spread constraint.
    """
    selector = term.get("labelSelector")
    wanted = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field, ())
        if key in labels
    ]
    if selector is None or not wanted:
        return term
    there = selector.get("matchExpressions", [])
    missing = [requirement for requirement in wanted if requirement not in there]
    return {**term, "labelSelector": {**selector, "matchExpressions": [*there, *missing]}}
