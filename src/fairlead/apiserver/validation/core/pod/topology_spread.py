"""Validates spec.topologySpreadConstraints of pods.

upstream: pkg/apis/core/validation/validation.go:validateTopologySpreadConstraints
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.facts import values_of
from fairlead.api.label import label_key_problems
from fairlead.api.objects import TopologySpreadConstraint
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.selector import check_label_selector

ACTIONS: Final = values_of("core.v1.TopologySpreadConstraint", "whenUnsatisfiable")
POLICIES: Final = values_of("core.v1.TopologySpreadConstraint", "nodeTaintsPolicy")
POSITIVE: Final = "must be greater than zero"


def check_spread(field: str, constraints: Sequence[TopologySpreadConstraint]) -> Causes:
    """Yield the errors of `constraints`.

    If two constraints have the same topologyKey, their whenUnsatisfiable must differ.
    """
    pairs = [(one.topology_key, one.when_unsatisfiable) for one in constraints]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, constraint in enumerate(constraints):
        where = f"{field}[{index}]"
        yield from _check_constraint(where, constraint)
        if last[pairs[index]] > index:
            key, action = pairs[index]
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")


def _check_constraint(field: str, constraint: TopologySpreadConstraint) -> Causes:
    action = constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        yield invalid(f"{field}.maxSkew", constraint.max_skew, POSITIVE)
    if not constraint.topology_key:
        yield required(f"{field}.topologyKey", "can not be empty")
    if action not in ACTIONS:
        yield not_supported(f"{field}.whenUnsatisfiable", action, ACTIONS)
    if constraint.min_domains is not None:
        if constraint.min_domains <= 0:
            yield invalid(f"{field}.minDomains", constraint.min_domains, POSITIVE)
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid(f"{field}.minDomains", constraint.min_domains, why)
    for key, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy is not None and policy not in POLICIES:
            yield not_supported(f"{field}.{key}", policy, POLICIES)
    yield from _check_keys(f"{field}.matchLabelKeys", constraint)
    yield from check_label_selector(f"{field}.labelSelector", constraint.label_selector)


def _check_keys(field: str, constraint: TopologySpreadConstraint) -> Causes:
    """Yield the errors of matchLabelKeys."""
    if constraint.match_label_keys and constraint.label_selector is None:
        yield forbidden(field, "must not be specified when labelSelector is not set")
    for index, key in enumerate(constraint.match_label_keys):
        for problem in label_key_problems(key):
            yield invalid(f"{field}[{index}]", key, problem)
