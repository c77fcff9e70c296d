"""Aggregation: cluster roles whose rules are those of other roles, found by their labels.

A controller writes them into the role; until it has, or where there is none, they are found here.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
"""

from __future__ import annotations

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.apiserver.kind import CLUSTER_ROLE
from fairlead.apiserver.storage.storage import Storage


def aggregated_rules(role: Json, storage: Storage) -> list[Json]:
    """The rules of `role`, with those that it gathers from others, and those from others again."""
    rules: dict[str, Json] = {}
    gathered = {_name(role)}
    waiting = [role]
    while waiting:
        one = waiting.pop()
        rules.update((repr(rule), rule) for rule in one.get("rules") or ())
        found = [other for other in _chosen(one, storage) if _name(other) not in gathered]
        gathered.update(map(_name, found))
        waiting += reversed(found)
    return list(rules.values())


def _name(role: Json) -> str:
    found: str = role["metadata"]["name"]
    return found


def _chosen(role: Json, storage: Storage) -> list[Json]:
    """The roles that `role` itself gathers, in order of their names."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    if not selectors:
        return []
    return [
        other
        for other in storage.items(CLUSTER_ROLE)
        if any(_selects(one, other) for one in selectors)
    ]


def _selects(selector: Json, role: Json) -> bool:
    return selector_matches(decode_as(LabelSelector, selector), role["metadata"].get("labels", {}))
