"""The minimal RBAC permissions of a running replica.

A replica reads what its controllers watch. Its writes are the requests of `perform`, events, the
Lease of the leader election, and the token and access reviews of the HTTP server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from fairlead.apiserver.kind import POD_GROUP
from fairlead.client.leader_election import ElectionConfig
from fairlead.worlds.cluster.resource import (
    BATCH,
    CONTROLLERS,
    LEASES_NAMESPACE,
    NODE_LIFECYCLE,
    SCHEDULER,
    TAINT_EVICTION,
    watched_resources,
)

Rule = dict[str, Any]
ROLE: Final = "fairlead"
_LEASES: Final = "coordination.k8s.io"
# Resources that each controller writes: API group, resource, verbs.
_WRITTEN: Final = {
    SCHEDULER: (
        ("", "pods", ("get", "delete")),
        ("", "pods/binding", ("create",)),
        ("", "pods/status", ("patch",)),
        ("", "persistentvolumeclaims", ("patch",)),
        ("", "persistentvolumes", ("patch",)),
        ("resource.k8s.io", "resourceclaims", ("get", "create", "patch", "delete")),
        ("resource.k8s.io", "resourceclaims/status", ("patch",)),
        # Since 1.36, also needed to patch status.allocation and status.reservedFor (feature gate
        # DRAResourceClaimGranularStatusAuthorization). upstream: resourceclaim/strategy.go
        ("resource.k8s.io", "resourceclaims/binding", ("patch",)),
    ),
    BATCH: tuple(
        (group, resource, verbs)
        for group in (
            "scheduling.volcano.sh",
            "scheduling.incubator.k8s.io",
            "scheduling.sigs.dev",
            "scheduling.x-k8s.io",
        )
        for resource, verbs in (("podgroups", ("get",)), ("podgroups/status", ("patch",)))
    ),
    NODE_LIFECYCLE: (
        ("", "nodes", ("patch",)),
        ("", "nodes/status", ("patch",)),
        ("", "pods", ("get", "delete")),
        ("", "pods/status", ("patch",)),
    ),
    TAINT_EVICTION: (("", "pods", ("get", "delete")), ("", "pods/status", ("patch",))),
}
_EVENTS: Final = (
    ("", "events", ("create", "patch")),
    ("events.k8s.io", "events", ("create", "patch")),
)
_REVIEWS: Final = (
    ("authentication.k8s.io", "tokenreviews", ("create",)),
    ("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)


def rbac_manifest(
    controllers: Collection[str],
    election: ElectionConfig | None,
    *,
    only_reads: bool = False,
    gated: Collection[str] = (),
    has_events: bool = True,
    has_server: bool = True,
) -> str:
    """Return the roles as YAML documents; if there is no leader election, `election` is None.

    If `only_reads` is True, return the roles of `fairlead run --shadow`, which needs no Lease.
    `gated` are the resources that the scheduler reads only because feature gates are on.
    `has_events` is False if `--no-events` is set, and `has_server` is False if `--listen none` is
    set.
    """
    rules = cluster_rules(
        controllers,
        only_reads=only_reads,
        gated=gated,
        has_events=has_events,
        has_server=has_server,
    )
    roles: list[tuple[str, str, list[Rule]]] = [("ClusterRole", "", rules)]
    if election is not None and not only_reads:
        roles.append(("Role", election.namespace, election_rules(election.name)))
    roles += [("Role", place, rules) for place, rules in heartbeat_rules(controllers).items()]
    return "---\n".join(_role(*role) for role in roles)


def _role(kind: str, namespace: str, rules: list[Rule]) -> str:
    place = f"\n  namespace: {namespace}" if namespace else ""
    head = (
        f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {ROLE}{place}"
    )
    lines = "".join(f"  - {msgspec.json.encode(rule).decode()}\n" for rule in rules)
    return f"{head}\nrules:\n{lines}"


def cluster_rules(
    controllers: Collection[str],
    *,
    only_reads: bool = False,
    gated: Collection[str] = (),
    has_events: bool = True,
    has_server: bool = True,
) -> list[Rule]:
    """Return the rules of the ClusterRole. `rbac_manifest` describes the parameters."""
    verbs: dict[tuple[str, str], dict[str, None]] = {}
    for resource in watched_resources(controllers, gated):
        if not resource.only_namespace:
            group = resource.api_version.rpartition("/")[0]
            verbs.setdefault((group, resource.plural), {}).update(list=None, watch=None)
    events = _EVENTS if has_events and not only_reads else ()
    reviews = _REVIEWS if has_server else ()
    written = () if only_reads else _written(controllers, gated)
    for group, name, more in (*written, *events, *reviews):
        verbs.setdefault((group, name), {}).update(dict.fromkeys(more))
    return [
        {"apiGroups": [group], "resources": [name], "verbs": list(given)}
        for (group, name), given in verbs.items()
    ]


def _written(
    controllers: Collection[str], gated: Collection[str]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for one in CONTROLLERS:
        if one in controllers:
            yield from _WRITTEN[one]
    if SCHEDULER in controllers and POD_GROUP.resource in gated:
        yield POD_GROUP.group, "podgroups", ("get",)
        yield POD_GROUP.group, "podgroups/status", ("patch",)


def election_rules(lease: str) -> list[Rule]:
    """Return the rules of the Role for the election's Lease, which is named `lease`.

    The rule for `create` has no resource name, because RBAC cannot limit `create` to a name.
    """
    return [
        {"apiGroups": [_LEASES], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": [_LEASES],
            "resources": ["leases"],
            "resourceNames": [lease],
            "verbs": ["get", "update"],
        },
    ]


def heartbeat_rules(controllers: Collection[str]) -> dict[str, list[Rule]]:
    """Return, by namespace, the Role rules that allow reading the nodes' heartbeat Leases.

    The result is empty if `controllers` does not contain NODE_LIFECYCLE.
    """
    if NODE_LIFECYCLE not in controllers:
        return {}
    rule = {"apiGroups": [_LEASES], "resources": ["leases"], "verbs": ["list", "watch"]}
    return {LEASES_NAMESPACE: [rule]}
