"""Nobody gives rights that they do not have.

Whoever writes a role must have all that is in it, and whoever binds one must have all that is in
that role, unless they may `escalate`, or `bind`. A role that gathers the rules of others may gather
anything: that takes all rights there are.

upstream: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.auth.authorization.rule import compact, described, uncovered
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.error import ApiError, forbidden, not_found
from fairlead.apiserver.kind import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Kind,
)
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage

_ROLES: Final = (ROLE, CLUSTER_ROLE)
_BINDINGS: Final = (ROLE_BINDING, CLUSTER_ROLE_BINDING)
_EVERYTHING: Final[tuple[Json, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_GATHERING: Final = "must have cluster-admin privileges to use the aggregationRule"
# What the garbage collector may change anywhere; upstream: helpers.go:IsOnlyMutatingGCFields
_TIES: Final = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class RoleEscalation:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse who gives more than they have. Raises ApiError 403; 404 where nobody knows."""
        kind, obj = asked.kind, asked.obj
        write, old = asked.about.write, asked.about.old
        is_written = asked.operation in (Operation.CREATE, Operation.UPDATE)
        if not is_written or kind not in (*_ROLES, *_BINDINGS):
            return obj
        if write.user is None or write.rights is None or SYSTEM_MASTERS in write.user.groups:
            return obj
        if old is not None and _untied(obj) == _untied(old):
            return obj
        asker = _Asker(write.rights, write.user)
        if kind in _ROLES:
            asker.require_role(kind, obj, old or {})
        else:
            asker.require_bound(kind, obj)
        return obj


@dataclass(frozen=True, slots=True)
class _Asker:
    """Somebody with rights."""

    rights: Authorizer
    user: User

    def require_role(self, kind: Kind, role: Json, old: Json) -> None:
        """Refuse a role that gives more. Raises ApiError 403."""
        namespace, name = _namespace(role), role["metadata"]["name"]
        if self._may("escalate", kind, namespace, name):
            return
        self._require(kind, role, role.get("rules") or ())
        if (_gathers(role) or _gathers(old)) and self._lacks(_EVERYTHING, namespace):
            raise forbidden(kind, namespace, name, _GATHERING)

    def require_bound(self, kind: Kind, binding: Json) -> None:
        """Refuse a binding that gives more. Raises ApiError 403, 404."""
        reference, namespace = binding.get("roleRef") or {}, _namespace(binding)
        name, is_role = reference.get("name", ""), reference.get("kind") == ROLE.kind
        role = ROLE if is_role else CLUSTER_ROLE
        if self._may("bind", role, namespace, name):
            return
        rules = self.rights.rules_of(reference, namespace)
        if rules is None:
            raise not_found(role, namespace if is_role else "", name)
        self._require(kind, binding, rules)

    def _may(self, verb: str, kind: Kind, namespace: str, name: str) -> bool:
        """Whether they may do that to a role."""
        asked = AuthorizationAttributes(
            self.user,
            verb,
            group=kind.group,
            version=kind.version,
            resource=kind.plural,
            namespace=namespace,
            name=name,
        )
        return self.rights.verdict(asked).allowed

    def _lacks(self, wanted: Sequence[Json], namespace: str) -> list[Json]:
        """What of that they do not have."""
        return uncovered(self.rights.rules_for(self.user, namespace), wanted)

    def _require(self, kind: Kind, obj: Json, wanted: Sequence[Json]) -> None:
        missing = self._lacks(wanted, _namespace(obj))
        if missing:
            raise _refusal(self.user, kind, obj, missing)


def _namespace(obj: Json) -> str:
    found: str = obj["metadata"].get("namespace", "")
    return found


def _gathers(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _untied(obj: Json) -> Json:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _TIES}
    return {**obj, "metadata": meta}


def _refusal(user: User, kind: Kind, obj: Json, missing: list[Json]) -> ApiError:
    meta = obj["metadata"]
    groups = " ".join(f'"{group}"' for group in user.groups)
    rules = sorted(map(described, compact(missing)))
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not '
        "currently held:\n" + "\n".join(rules)
    )
    return forbidden(kind, meta.get("namespace", ""), meta["name"], why)
