"""Nobody gives rights that they do not have.

Whoever writes a role must have all that is in it, and whoever binds one must have all that is in
that role, unless they may `escalate`, or `bind`.

upstream: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.apiserver.admission.plugin import ALONE, Circumstances, Operation
from fairlead.apiserver.auth.rbac import Rbac
from fairlead.apiserver.auth.rule import compact, described, uncovered
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Kind,
)
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.serving.identity import Attributes
from fairlead.apiserver.storage import Json, Storage


class RoleEscalation:
    """The admission plugin; rights are read from the storage that is written to."""

    def __init__(self) -> None:
        """Nothing is read before somebody writes a role or a binding."""
        self._rights: tuple[Storage, Rbac] | None = None

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """Refuse who gives more than they have. Raises ApiError 403."""
        user = circumstances.write.user
        is_written = operation in (Operation.CREATE, Operation.UPDATE)
        if user is None or SYSTEM_MASTERS in user.groups or not is_written:
            return obj
        if kind in (ROLE, CLUSTER_ROLE):
            _require_role(self._rights_in(storage), user, kind, obj)
        elif kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
            _require_bound(self._rights_in(storage), user, kind, obj)
        return obj

    def _rights_in(self, storage: Storage) -> Rbac:
        if self._rights is None or self._rights[0] is not storage:
            self._rights = storage, Rbac(storage)
        return self._rights[1]


def _require_role(rights: Rbac, user: User, kind: Kind, role: Json) -> None:
    asker = _Asker(rights, user)
    if not asker.may("escalate", kind, _namespace(role), role["metadata"]["name"]):
        asker.require(kind, role, role.get("rules") or ())


def _require_bound(rights: Rbac, user: User, kind: Kind, binding: Json) -> None:
    asker, namespace = _Asker(rights, user), _namespace(binding)
    reference = binding.get("roleRef") or {}
    role = ROLE if reference.get("kind") == ROLE.kind else CLUSTER_ROLE
    if not asker.may("bind", role, namespace, reference.get("name", "")):
        asker.require(kind, binding, rights.rules_of(reference, namespace))


def _namespace(obj: Json) -> str:
    found: str = obj["metadata"].get("namespace", "")
    return found


@dataclass(frozen=True, slots=True)
class _Asker:
    """Somebody with rights."""

    rights: Rbac
    user: User

    def may(self, verb: str, kind: Kind, namespace: str, name: str) -> bool:
        """Whether they may do that to a role."""
        asked = Attributes(
            self.user,
            verb,
            group=kind.group,
            version=kind.version,
            resource=kind.plural,
            namespace=namespace,
            name=name,
        )
        return self.rights.verdict(asked).allowed

    def require(self, kind: Kind, obj: Json, wanted: Sequence[Json]) -> None:
        """Refuse `obj` unless they have all that is `wanted`. Raises ApiError 403."""
        owned = self.rights.rules_for(self.user, _namespace(obj))
        missing = uncovered(owned, wanted)
        if missing:
            raise _refusal(self.user, kind, obj, missing)


def _refusal(user: User, kind: Kind, obj: Json, missing: list[Json]) -> ApiError:
    meta = obj["metadata"]
    groups = " ".join(f'"{group}"' for group in user.groups)
    rules = sorted(map(described, compact(missing)))
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not '
        "currently held:\n" + "\n".join(rules)
    )
    return forbidden(kind, meta.get("namespace", ""), meta["name"], why)
