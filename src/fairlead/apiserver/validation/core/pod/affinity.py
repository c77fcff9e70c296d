"""Validates node affinity, pod affinity and pod anti-affinity.

upstream: pkg/apis/core/validation/validation.go:validateAffinity
"""

from __future__ import annotations

from typing import Final

from fairlead.api.label import label_key_problems
from fairlead.api.objects import Affinity, NodeAffinity, PodAffinity, PodAffinityTerm
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import dns_label_problems
from fairlead.apiserver.validation.meta.selector import (
    check_label_selector,
    check_node_selector,
    check_node_selector_term,
)

WEIGHT_MAX: Final = 100
NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_affinity(field: str, affinity: Affinity | None) -> Causes:
    """Yield all errors of a pod's affinity; `field` is its path."""
    if affinity is None:
        return
    if affinity.node_affinity:
        yield from _check_node_affinity(f"{field}.nodeAffinity", affinity.node_affinity)
    if affinity.pod_affinity:
        yield from _check_pod_affinity(f"{field}.podAffinity", affinity.pod_affinity)
    if affinity.pod_anti_affinity:
        yield from _check_pod_affinity(f"{field}.podAntiAffinity", affinity.pod_anti_affinity)


def _check_node_affinity(field: str, affinity: NodeAffinity) -> Causes:
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        yield from check_node_selector(f"{field}.{_REQUIRED}", selector)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    for index, term in enumerate(preferred):
        where = f"{field}.{_PREFERRED}[{index}]"
        yield from _check_weight(f"{where}.weight", term.weight)
        # Upstream does not check the label values of preferred terms.
        yield from check_node_selector_term(f"{where}.preference", term.preference, strict=False)


def _check_pod_affinity(field: str, affinity: PodAffinity) -> Causes:
    demanded = affinity.required_during_scheduling_ignored_during_execution
    for index, term in enumerate(demanded):
        yield from _check_term(f"{field}.{_REQUIRED}[{index}]", term)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    for index, weighted in enumerate(preferred):
        where = f"{field}.{_PREFERRED}[{index}]"
        yield from _check_weight(f"{where}.weight", weighted.weight)
        yield from _check_term(f"{where}.podAffinityTerm", weighted.pod_affinity_term)


def _check_weight(field: str, weight: int) -> Causes:
    if not 1 <= weight <= WEIGHT_MAX:
        yield invalid(field, weight, "must be in the range 1-100")


def _check_term(field: str, term: PodAffinityTerm) -> Causes:
    yield from check_label_selector(f"{field}.labelSelector", term.label_selector)
    yield from check_label_selector(f"{field}.namespaceSelector", term.namespace_selector)
    for namespace in term.namespaces:
        for problem in dns_label_problems(namespace):
            yield invalid(f"{field}.namespace", namespace, problem)
    yield from _check_keys(field, term)
    if not term.topology_key:
        yield required(f"{field}.topologyKey", "can not be empty")
    for problem in label_key_problems(term.topology_key):
        yield invalid(f"{field}.topologyKey", term.topology_key, problem)


def _check_keys(field: str, term: PodAffinityTerm) -> Causes:
    """Yield the errors of matchLabelKeys and mismatchLabelKeys."""
    # upstream: validation.go:validateMatchLabelKeysAndMismatchLabelKeys
    for name, keys in (
        ("matchLabelKeys", term.match_label_keys),
        ("mismatchLabelKeys", term.mismatch_label_keys),
    ):
        if keys and term.label_selector is None:
            yield forbidden(f"{field}.{name}", NO_SELECTOR)
            continue
        for index, key in enumerate(keys):
            for problem in label_key_problems(key):
                yield invalid(f"{field}.{name}[{index}]", key, problem)
    for index, key in enumerate(term.match_label_keys):
        if key in term.mismatch_label_keys:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{field}.matchLabelKeys[{index}]", key, why)
