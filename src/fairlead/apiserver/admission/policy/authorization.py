"""Requires that the authors of policies can read the parameters that their policies use.

Expressions read parameters and can quote them in messages. Therefore the author of a policy with a
paramKind must be able to get all objects of that kind. The author of a binding must be able to get
the objects that its paramRef selects.

upstream: pkg/registry/admissionregistration/{validating,mutating}admissionpolicy/authz.go,
{validating,mutating}admissionpolicybinding/authz.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
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
# The kind of policy that each kind of binding refers to.
_POLICY_OF_BINDING: Final[Mapping[Kind, Kind]] = {
    VALIDATING_ADMISSION_POLICY_BINDING: VALIDATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING: MUTATING_ADMISSION_POLICY,
}
_ALL: Final = "*"


class PolicyAuthorization:
    """An admission plugin: the author of a policy must be able to read its parameters."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a policy or binding if the user may not read its parameters.

        Raises ApiError 422.
        """
        if (
            attributes.operation in (Operation.CREATE, Operation.UPDATE)
            and not attributes.subresource
        ):
            if attributes.kind in _POLICIES:
                _require_access_to_kind(attributes, storage)
            elif attributes.kind in _POLICY_OF_BINDING:
                _require_access_to_params(attributes, storage)
        return attributes.obj


def _require_access_to_kind(attributes: AdmissionAttributes, storage: Storage) -> None:
    reference, before = (
        _spec(attributes.obj).get("paramKind"),
        _spec(attributes.old).get("paramKind"),
    )
    if not reference or reference == before:
        return
    target = {"name": _ALL, "namespace": _ALL}
    if not _may_get(attributes, {**_resource(reference, storage), **target}):
        kind, api_version = reference.get("kind", ""), reference.get("apiVersion", "")
        named = f"kind={kind}, apiVersion={api_version}"
        why = f'must have "get" permission on all objects of the referenced paramKind ({named})'
        _refuse(attributes, "spec.paramKind", why)


def _require_access_to_params(attributes: AdmissionAttributes, storage: Storage) -> None:
    spec, before = _spec(attributes.obj), _spec(attributes.old)
    reference = spec.get("paramRef")
    is_unchanged = all(spec.get(key) == before.get(key) for key in ("paramRef", "policyName"))
    if not reference or is_unchanged:
        return
    policy = storage.find(_POLICY_OF_BINDING[attributes.kind], "", spec.get("policyName", ""))
    target = {key: reference.get(key, "") for key in ("name", "namespace")}
    if not _may_get(attributes, {**_resource(_spec(policy).get("paramKind"), storage), **target}):
        why = 'does not have "get" permission on the object referenced by paramRef'
        _refuse(attributes, "spec.paramRef", why)


def _spec(obj: Json | None) -> Json:
    found: Json = (obj or {}).get("spec") or {}
    return found


def _resource(reference: Json | None, storage: Storage) -> dict[str, str]:
    """Return group, version and resource of the paramKind `reference`, for an access check.

    If the server does not know the kind, the resource is `*`. If there is no paramKind, all three
    are `*`.
    """
    if not reference:
        return {"group": _ALL, "version": _ALL, "resource": _ALL}
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    kind = param_kind(reference, storage)
    return {"group": group, "version": version, "resource": kind.plural if kind else _ALL}


def _may_get(attributes: AdmissionAttributes, target: Mapping[str, Any]) -> bool:
    write = attributes.write
    if write.user is None or write.rights is None:
        return True
    return write.rights.verdict(AuthorizationAttributes(write.user, "get", **target)).allowed


def _refuse(attributes: AdmissionAttributes, field: str, why: str) -> None:
    user = attributes.write.user
    assert user is not None
    cause = forbidden(field, f"user {_go_user(user)} {why}")
    raise invalid(attributes.kind, "", attributes.name, (cause,))


def _go_user(user: User) -> str:
    """Return `user` in the format in which Go prints upstream's user struct."""
    extra = " ".join(f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
