"""Nobody lets a policy read what they may not read themselves.

Parameters of policies are seen by their expressions, and those tell of them in messages. Whoever
writes a policy with parameters must be able to get all objects of their kind, and whoever binds it
those that the binding refers to.

upstream: pkg/registry/admissionregistration/{validating,mutating}admissionpolicy/authz.go,
{validating,mutating}admissionpolicybinding/authz.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.policy.match import param_kind
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import (
    MUTATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
    Kind,
)
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.field import forbidden

_POLICIES: Final = (VALIDATING_ADMISSION_POLICY, MUTATING_ADMISSION_POLICY)
# Whose policies they bind.
_BOUND: Final[Mapping[Kind, Kind]] = {
    VALIDATING_ADMISSION_POLICY_BINDING: VALIDATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING: MUTATING_ADMISSION_POLICY,
}
_ALL: Final = "*"


class PolicyRights:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse parameters that somebody may not read. Raises ApiError 422."""
        if asked.operation in (Operation.CREATE, Operation.UPDATE) and not asked.about.subresource:
            if asked.kind in _POLICIES:
                _require_kind(asked, storage)
            elif asked.kind in _BOUND:
                _require_objects(asked, storage)
        return asked.obj


def _require_kind(asked: Asked, storage: Storage) -> None:
    wanted, before = _spec(asked.obj).get("paramKind"), _spec(asked.about.old).get("paramKind")
    if not wanted or wanted == before:
        return
    place = {"name": _ALL, "namespace": _ALL}
    if not _may_get(asked, {**_resource(wanted, storage), **place}):
        named = f"kind={wanted.get('kind', '')}, apiVersion={wanted.get('apiVersion', '')}"
        why = f'must have "get" permission on all objects of the referenced paramKind ({named})'
        _refuse(asked, "spec.paramKind", why)


def _require_objects(asked: Asked, storage: Storage) -> None:
    spec, before = _spec(asked.obj), _spec(asked.about.old)
    reference = spec.get("paramRef")
    same = all(spec.get(key) == before.get(key) for key in ("paramRef", "policyName"))
    if not reference or same:
        return
    policy = storage.find(_BOUND[asked.kind], "", spec.get("policyName", ""))
    place = {key: reference.get(key, "") for key in ("name", "namespace")}
    if not _may_get(asked, {**_resource(_spec(policy).get("paramKind"), storage), **place}):
        why = 'does not have "get" permission on the object referenced by paramRef'
        _refuse(asked, "spec.paramRef", why)


def _spec(obj: Json | None) -> Json:
    found: Json = (obj or {}).get("spec") or {}
    return found


def _resource(wanted: Json | None, storage: Storage) -> dict[str, str]:
    """What parameters of the kind `wanted` are; anything where nobody knows it."""
    if not wanted:
        return {"group": _ALL, "version": _ALL, "resource": _ALL}
    group, _, version = wanted.get("apiVersion", "").rpartition("/")
    kind = param_kind(wanted, storage)
    return {"group": group, "version": version, "resource": kind.plural if kind else _ALL}


def _may_get(asked: Asked, what: Mapping[str, Any]) -> bool:
    write = asked.about.write
    if write.user is None or write.rights is None:
        return True
    return write.rights.verdict(AuthorizationAttributes(write.user, "get", **what)).allowed


def _refuse(asked: Asked, field: str, why: str) -> None:
    user = asked.about.write.user
    assert user is not None
    cause = forbidden(field, f"user {_told(user)} {why}")
    raise invalid(asked.kind, "", asked.name, (cause,))


def _told(user: User) -> str:
    """As Go prints one."""
    extra = " ".join(f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
