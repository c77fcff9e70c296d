"""Builds the namespaces, RBAC roles and bindings of a new cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.bootstrap_policy.controller_roles import (
    CONTROLLERS,
    EVENTS,
    GATED_CONTROLLERS,
    PREFIX,
)
from fairlead.apiserver.auth.bootstrap_policy.roles import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GATED_RULES,
    READ,
    READ_WRITE,
    ROLE_BINDINGS,
    ROLES,
    WRITE,
)
from fairlead.apiserver.kind import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Kind,
)

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
AUTOUPDATE: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AGGREGATE_TO: Final = f"{RBAC_GROUP}/aggregate-to-"
# If the name of a role begins with this prefix, its binding is named `system::` plus that name.
_DOUBLE_PREFIXED: Final = "extension-apiserver-"
_VERBS: Final = {"READ": READ, "WRITE": WRITE, "READ_WRITE": READ_WRITE}


def bootstrap_objects(gates: Collection[str] = ()) -> Iterator[Json]:
    """Yield the initial namespaces of a cluster, and its RBAC roles and bindings.

    A ClusterRole with an aggregationRule already has the rules of the roles that it selects.
    `gates` are the enabled feature gates, which add rules.
    """
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    controllers = _controllers(gates)
    roles = [*_roles(CLUSTER_ROLES), *_roles(_controller_roles(controllers))]
    roles = [_with_gated_rules(role, gates) for role in roles]
    for role in roles:
        yield {**role, "rules": _aggregated_rules(role, roles)}
    for name, *subjects in CLUSTER_ROLE_BINDINGS:
        yield _binding(name, subjects)
    for line in controllers:
        if not line.startswith(" "):
            yield _binding(f"{PREFIX}{line}", [("ServiceAccount", line)])
    yield from _roles(ROLES)
    for name, *subjects in ROLE_BINDINGS:
        yield _binding(name, subjects)


def _with_gated_rules(role: Json, gates: Collection[str]) -> Json:
    name = role["metadata"]["name"]
    added = [
        _rule(line.split())
        for gate, rules in GATED_RULES.items()
        if gate in gates
        for line in rules.get(name, ())
    ]
    return {**role, "rules": [*role["rules"], *added]} if added else role


def _controllers(gates: Collection[str]) -> list[str]:
    """Return the lines of CONTROLLERS, and of the GATED_CONTROLLERS whose gate is in `gates`."""
    gated = (table for gate, table in GATED_CONTROLLERS.items() if gate in gates)
    return [line for table in (CONTROLLERS, *gated) for line in table.strip().splitlines()]


def _controller_roles(controllers: list[str]) -> str:
    """Return the roles of `controllers` as text, in the format of the tables in roles.py."""
    named = (line if line.startswith(" ") else f"{PREFIX}{line}" for line in controllers)
    return "\n".join(named).replace("EVENTS", EVENTS)


def _roles(table: str) -> Iterator[Json]:
    role: Json = {}
    for line in table.strip().splitlines():
        if line.startswith(" "):
            role["rules"].append(_rule(line.split()))
        else:
            if role:
                yield role
            role = _role(line)
    yield role


def _role(line: str) -> Json:
    """Return the role in `line`, the first line of a role in a table; rules are added later."""
    head, _, selects = line.partition(" <- ")
    name, _, target = head.partition(" -> ")
    meta = _meta(name)
    if target:
        meta["labels"][f"{AGGREGATE_TO}{target}"] = "true"
    role = _typed(ROLE if "namespace" in meta else CLUSTER_ROLE, meta, {"rules": []})
    if selects:
        selector = {"matchLabels": {f"{AGGREGATE_TO}{selects}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _rule(words: list[str]) -> Json:
    verbs, groups, resources, *names = words
    rule: Json = {"verbs": list(_VERBS.get(verbs, ())) or verbs.split(",")}
    if groups == "~":
        return {**rule, "nonResourceURLs": resources.split(",")}
    rule["apiGroups"] = ["" if group == "-" else group for group in groups.split(",")]
    rule["resources"] = resources.split(",")
    return {**rule, "resourceNames": names[0].split(",")} if names else rule


def _aggregated_rules(role: Json, roles: list[Json]) -> list[Json]:
    """Return the rules of `role`, then the rules of the roles that `role` aggregates.

    The aggregated roles are sorted by name.
    """
    rules = list(role["rules"])
    for selector in role.get("aggregationRule", {}).get("clusterRoleSelectors", ()):
        labels = selector["matchLabels"].items()
        for other in sorted(roles, key=lambda one: str(one["metadata"]["name"])):
            if labels <= other["metadata"]["labels"].items():
                rules += (rule for rule in _aggregated_rules(other, roles) if rule not in rules)
    return rules


def _binding(name: str, subjects: list[tuple[str, str]]) -> Json:
    meta = _meta(name)
    namespace = meta.get("namespace", "")
    role, binding = (ROLE, ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
    reference = {"apiGroup": RBAC_GROUP, "kind": role.kind, "name": meta["name"]}
    subject_list = [_subject(kind, subject_name) for kind, subject_name in subjects]
    if meta["name"].startswith(_DOUBLE_PREFIXED):
        meta["name"] = f"system::{meta['name']}"
    return _typed(binding, meta, {"subjects": subject_list, "roleRef": reference})


def _subject(kind: str, name: str) -> Json:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}


def _meta(path: str) -> Json:
    """Return the metadata of an object; `path` is `NAME` or `NAMESPACE/NAME`."""
    namespace, _, name = path.rpartition("/")
    meta: Json = {"name": name, "labels": dict(BOOTSTRAPPING), "annotations": dict(AUTOUPDATE)}
    return {**meta, "namespace": namespace} if namespace else meta


def _typed(kind: Kind, meta: Json, fields: Json) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}
