"""Aggregation: cluster roles whose rules are those of other roles, found by their labels.

A controller writes them into the role; until it has, or where there is none, they are found here.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
"""

from __future__ import annotations

from typing import Any

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.apiserver.kind import CLUSTER_ROLE
from fairlead.apiserver.storage import Storage

Json = dict[str, Any]


def aggregated_rules(
    role: Json, storage: Storage, gathered: frozenset[str] = frozenset()
) -> list[Json]:
    """The rules of `role`, with those it gathers from others; not again from those `gathered`."""
    rules = list(role.get("rules") or ())
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    if not selectors:
        return rules
    gathered |= {role["metadata"]["name"]}
    for other in storage.items(CLUSTER_ROLE):
        is_new = other["metadata"]["name"] not in gathered
        if is_new and any(_selects(one, other) for one in selectors):
            found = aggregated_rules(other, storage, gathered)
            rules += (rule for rule in found if rule not in rules)
    return rules


def _selects(selector: Json, role: Json) -> bool:
    # A budget is the smallest kind with a label selector in it.
    decoded = decode_as(PodDisruptionBudget, {"spec": {"selector": selector}}).spec.selector
    return selector_matches(decoded, role["metadata"].get("labels", {}))
