"""Prevents RBAC privilege escalation: users can grant only permissions that they have.

A user who writes a role needs all permissions in it, or the verb `escalate`. A user who binds a
role needs all permissions in it, or the verb `bind`. A ClusterRole with an aggregation rule can
gain any permission. Therefore, a user who writes such a ClusterRole needs every permission, or the
verb `escalate`.

upstream: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.auth.authorization.policy_rule import (
    compact_rules,
    rule_text,
    uncovered_rules,
)
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.error import forbidden, not_found
from fairlead.apiserver.kind import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Kind
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage

_ROLES: Final = (ROLE, CLUSTER_ROLE)
_BINDINGS: Final = (ROLE_BINDING, CLUSTER_ROLE_BINDING)
_ALL_PERMISSIONS: Final[tuple[Json, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_AGGREGATION_REFUSED: Final = "must have cluster-admin privileges to use the aggregationRule"
# A change to only these fields is allowed; upstream: helpers.go:IsOnlyMutatingGCFields
_GARBAGE_COLLECTOR_FIELDS: Final = (
    "ownerReferences",
    "finalizers",
    "managedFields",
    "resourceVersion",
)


class RbacEscalation:
    """The admission plugin that prevents privilege escalation through roles and bindings."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse grants that exceed the user's permissions.

        Raises ApiError 403 for such a grant. Raises ApiError 404 if a binding refers to a role that
        does not exist.
        """
        kind, obj = attributes.kind, attributes.obj
        write, old = attributes.write, attributes.old
        is_written = attributes.operation in (Operation.CREATE, Operation.UPDATE)
        if not is_written or kind not in (*_ROLES, *_BINDINGS):
            return obj
        if write.user is None or write.rights is None or SYSTEM_MASTERS in write.user.groups:
            return obj
        if old is not None and _without_garbage_collector_fields(
            obj
        ) == _without_garbage_collector_fields(old):
            return obj
        grantor = _Grantor(write.rights, write.user)
        if kind in _ROLES:
            grantor.require_role(kind, obj, old or {})
        else:
            grantor.require_bound(kind, obj)
        return obj


class _Grantor(Struct, frozen=True):
    """A user, and the authorizer that returns the user's permissions."""

    rights: Authorizer
    user: User

    def require_role(self, kind: Kind, role: Json, old: Json) -> None:
        """Refuse a role that exceeds the user's permissions. Raises ApiError 403."""
        namespace, name = _namespace(role), role["metadata"]["name"]
        if self._may("escalate", kind, namespace, name):
            return
        self._require(kind, role, role.get("rules") or ())
        if (_aggregates(role) or _aggregates(old)) and self._lacks(_ALL_PERMISSIONS, namespace):
            raise forbidden(kind, namespace, name, _AGGREGATION_REFUSED)

    def require_bound(self, kind: Kind, binding: Json) -> None:
        """Refuse a binding that exceeds the user's permissions.

        Raises ApiError 403 for such a binding. Raises ApiError 404 if the role does not exist.
        """
        reference, namespace = binding.get("roleRef") or {}, _namespace(binding)
        name, is_role = reference.get("name", ""), reference.get("kind") == ROLE.kind
        role = ROLE if is_role else CLUSTER_ROLE
        if self._may("bind", role, namespace, name):
            return
        descriptions = self.rights.rules_of(reference, namespace)
        if descriptions is None:
            raise not_found(role, namespace if is_role else "", name)
        self._require(kind, binding, descriptions)

    def _may(self, verb: str, kind: Kind, namespace: str, name: str) -> bool:
        """Return whether the user may use `verb` on the role `name`."""
        request = AuthorizationAttributes(
            self.user,
            verb,
            group=kind.group,
            version=kind.version,
            resource=kind.plural,
            namespace=namespace,
            name=name,
        )
        return self.rights.verdict(request).allowed

    def _lacks(self, rules_granted: Sequence[Json], namespace: str) -> list[Json]:
        """Return the rules in `rules_granted` that the user's own permissions do not cover."""
        return uncovered_rules(self.rights.rules_for(self.user, namespace), rules_granted)

    def _require(self, kind: Kind, obj: Json, rules_granted: Sequence[Json]) -> None:
        namespace = _namespace(obj)
        missing = self._lacks(rules_granted, namespace)
        if missing:
            groups = " ".join(f'"{group}"' for group in self.user.groups)
            descriptions = sorted(map(rule_text, compact_rules(missing)))
            reason = (
                f'user "{self.user.name}" (groups=[{groups}]) is attempting to grant RBAC '
                "permissions not currently held:\n" + "\n".join(descriptions)
            )
            raise forbidden(kind, namespace, obj["metadata"]["name"], reason)


def _namespace(obj: Json) -> str:
    found: str = obj["metadata"].get("namespace", "")
    return found


def _aggregates(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _without_garbage_collector_fields(obj: Json) -> Json:
    meta = {
        key: value for key, value in obj["metadata"].items() if key not in _GARBAGE_COLLECTOR_FIELDS
    }
    return {**obj, "metadata": meta}
