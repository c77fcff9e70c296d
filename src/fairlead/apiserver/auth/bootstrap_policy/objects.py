"""The roles, bindings and namespaces that a new cluster begins with, as objects to be created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.bootstrap_policy.controller_roles import CONTROLLERS, EVENTS, PREFIX
from fairlead.apiserver.auth.bootstrap_policy.roles import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
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
# The one role whose binding has another name.
_BOUND_UNDER_PREFIX: Final = "extension-apiserver-"
_VERBS: Final = {"READ": READ, "WRITE": WRITE, "READ_WRITE": READ_WRITE}


def bootstrap_objects() -> Iterator[Json]:
    """Namespaces, then cluster roles and their bindings; what roles gather is in them already."""
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    roles = [*_roles(CLUSTER_ROLES), *_roles(_controller_roles())]
    for role in roles:
        yield {**role, "rules": _gathered(role, roles)}
    for name, *subjects in CLUSTER_ROLE_BINDINGS:
        yield _binding(name, subjects)
    for name in _controllers():
        yield _binding(f"{PREFIX}{name}", [("ServiceAccount", name)])
    yield from _roles(ROLES)
    for name, *subjects in ROLE_BINDINGS:
        yield _binding(name, subjects)


def _controllers() -> list[str]:
    return [line for line in CONTROLLERS.strip().splitlines() if not line.startswith(" ")]


def _controller_roles() -> str:
    """The roles of controllers, written as all others."""
    lines = CONTROLLERS.strip().splitlines()
    named = (line if line.startswith(" ") else f"{PREFIX}{line}" for line in lines)
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
    """A role without rules; `NAME -> ROLE` is gathered into one, `NAME <- LABEL` gathers."""
    head, _, gathers = line.partition(" <- ")
    name, _, into = head.partition(" -> ")
    meta = _meta(name)
    if into:
        meta["labels"][f"{AGGREGATE_TO}{into}"] = "true"
    role = _typed(ROLE if "namespace" in meta else CLUSTER_ROLE, meta, {"rules": []})
    if gathers:
        selector = {"matchLabels": {f"{AGGREGATE_TO}{gathers}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _rule(words: list[str]) -> Json:
    verbs, groups, things, *names = words
    rule: Json = {"verbs": list(_VERBS.get(verbs, ())) or verbs.split(",")}
    if groups == "~":
        return {**rule, "nonResourceURLs": things.split(",")}
    rule["apiGroups"] = ["" if group == "-" else group for group in groups.split(",")]
    rule["resources"] = things.split(",")
    return {**rule, "resourceNames": names[0].split(",")} if names else rule


def _gathered(role: Json, roles: list[Json]) -> list[Json]:
    """Its own rules and those of the roles that it gathers, in order of their names."""
    rules = list(role["rules"])
    for selector in role.get("aggregationRule", {}).get("clusterRoleSelectors", ()):
        wanted = selector["matchLabels"].items()
        for other in sorted(roles, key=lambda one: str(one["metadata"]["name"])):
            if wanted <= other["metadata"]["labels"].items():
                rules += (rule for rule in _gathered(other, roles) if rule not in rules)
    return rules


def _binding(name: str, subjects: list[tuple[str, str]]) -> Json:
    meta = _meta(name)
    namespace = meta.get("namespace", "")
    role, binding = (ROLE, ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
    reference = {"apiGroup": RBAC_GROUP, "kind": role.kind, "name": meta["name"]}
    given = [_subject(kind, whom) for kind, whom in subjects]
    if meta["name"].startswith(_BOUND_UNDER_PREFIX):
        meta["name"] = f"system::{meta['name']}"
    return _typed(binding, meta, {"subjects": given, "roleRef": reference})


def _subject(kind: str, name: str) -> Json:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}


def _meta(place: str) -> Json:
    """Metadata of `NAME`, or of `NAMESPACE/NAME`."""
    namespace, _, name = place.rpartition("/")
    meta: Json = {"name": name, "labels": dict(BOOTSTRAPPING), "annotations": dict(AUTOUPDATE)}
    return {**meta, "namespace": namespace} if namespace else meta


def _typed(kind: Kind, meta: Json, fields: Json) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}
