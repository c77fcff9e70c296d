"""AggregatedRoles: writes the rules of ClusterRoles that have an aggregation rule.

Such a role has the rules of all other ClusterRoles that its selectors match. Authorization
evaluates the aggregation rule itself, so only clients that read the role need the written rules.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go:syncClusterRole
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, LabelSelector, Unstructured
from fairlead.api.selector import selector_matches
from fairlead.apiserver.kind import CLUSTER_ROLE
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

NAME: Final = "clusterrole-aggregation-controller"


class AggregatedRoles(ReactiveController):
    """Keeps the rules of the aggregated ClusterRoles in `storage` up to date."""

    issuer: ClassVar[Issuer] = controller_account(NAME)
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,), succeeded=(), failed=(PatchObject,)
    )

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the commands that update outdated roles, if any ClusterRole has changed."""
        if not any(kind_name(one) == CLUSTER_ROLE.kind for one, _ in changed):
            return []
        roles = list(self._storage.items(CLUSTER_ROLE))
        return [command for role in roles for command in _write(role, roles)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a ClusterRole."""
        return target.kind == CLUSTER_ROLE.kind

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the write that the ClusterRole `target` needs now; [] if it needs no write."""
        role = self._storage.find(CLUSTER_ROLE, "", target.name)
        return [] if role is None else _write(role, list(self._storage.items(CLUSTER_ROLE)))


def _write(role: Json, roles: list[Json]) -> list[Command]:
    """Return the command that writes the rules that `role` aggregates from `roles`.

    Returns [] if `role` has these rules already, has no aggregation rule, or is terminating.
    """
    meta = role["metadata"]
    if role.get("aggregationRule") is None or meta.get("deletionTimestamp"):
        return []
    rules = _aggregated_rules(role, roles)
    if rules == (role.get("rules") or []):
        return []
    return [
        PatchObject(ObjectRef(CLUSTER_ROLE.kind, "", meta["name"], meta["uid"]), {"rules": rules})
    ]


def _aggregated_rules(role: Json, roles: list[Json]) -> list[Json]:
    """Return the rules of the roles that `role` selects, without duplicates.

    The rules are sorted by the first selector that matches their role, then by the role's name.
    """
    rules: list[Json] = []
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        decoded = decode_as(LabelSelector, selector)
        for other in roles:
            meta = other["metadata"]
            if meta["name"] != role["metadata"]["name"] and selector_matches(
                decoded, meta.get("labels") or {}
            ):
                rules += (rule for rule in other.get("rules") or () if rule not in rules)
    return rules
