"""RBAC: what the bindings in storage allow whom.

Nothing is allowed that no rule of a role allows which some binding gives to the user or to one of
their groups. `system:masters` may do everything, whatever is bound. Roles are read once and again
after a change of any of them.

upstream: plugin/pkg/auth/authorizer/rbac/rbac.go,
component-helpers/auth/rbac/validation/rule.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorization.aggregation import aggregated_rules
from fairlead.apiserver.auth.authorization.rule import allows
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Kind,
)
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage, StorageChange

SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_KINDS: Final = (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)
_RESOURCES: Final = frozenset(kind.resource for kind in _KINDS)


@dataclass(frozen=True, slots=True)
class _Grant:
    """A binding with the rules it gives to its subjects."""

    subjects: Sequence[Json]
    rules: Sequence[Json]
    namespace: str
    told: str

    def given_to(self, user: User) -> str:
        """As whom the user is meant, as in `User "bob"`; "" when not."""
        for subject in self.subjects:
            if _is_subject(subject, user, self.namespace):
                return _described(subject, self.namespace)
        return ""


# Has an opinion before roles are asked: a verdict, or why it has none ("" if it does not care).
Before = Callable[[AuthorizationAttributes], AccessDecision | str]


class Rbac:
    """An authorizer over the roles and bindings in `storage`."""

    def __init__(self, storage: Storage, before: Sequence[Before] = ()) -> None:
        """`before` are asked first."""
        self._storage = storage
        self._before = tuple(before)
        self._grants: dict[str, list[_Grant]] | None = None
        storage.subscribe(self._changed)

    def __call__(self, asked: AuthorizationAttributes) -> None:
        """Let it pass, or raise ApiError 403."""
        asked = _located(asked)
        verdict = self.verdict(asked)
        if not verdict.allowed:
            raise refusal(asked, verdict.reason)

    def verdict(self, asked: AuthorizationAttributes) -> AccessDecision:
        """Whether the user may do what is asked, and why (not)."""
        if SYSTEM_MASTERS in asked.user.groups:
            return AccessDecision(allowed=True)
        remarks = []
        for opinion in (before(asked) for before in self._before):
            if isinstance(opinion, AccessDecision):
                return opinion
            remarks.append(opinion)
        for grant, subject in self._granted(asked.user, asked.namespace):
            if any(allows(rule, asked) for rule in grant.rules):
                reason = f"RBAC: allowed by {grant.told} to {subject}"
                return AccessDecision(allowed=True, reason=reason)
        return AccessDecision(allowed=False, reason="\n".join(filter(None, remarks)))

    def rules_for(self, user: User, namespace: str) -> list[Json]:
        """All rules that the user has in a namespace, or ("") in the cluster."""
        return [rule for grant, _ in self._granted(user, namespace) for rule in grant.rules]

    def rules_of(self, reference: Json, namespace: str) -> list[Json] | None:
        """The rules of the role that a binding in `namespace` refers to; None: there is none."""
        name = reference.get("name", "")
        if reference.get("kind") == ROLE.kind:
            role = self._storage.find(ROLE, namespace, name)
            return None if role is None else list(role.get("rules") or ())
        role = self._storage.find(CLUSTER_ROLE, "", name)
        return None if role is None else aggregated_rules(role, self._storage)

    def _granted(self, user: User, namespace: str) -> Iterator[tuple[_Grant, str]]:
        grants = self._read()
        for scope in ("", namespace) if namespace else ("",):
            for grant in grants.get(scope, ()):
                subject = grant.given_to(user)
                if subject:
                    yield grant, subject

    def _read(self) -> dict[str, list[_Grant]]:
        """The grants by namespace, those of the cluster under ""."""
        if self._grants is None:
            self._grants = {}
            for kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
                for binding in self._storage.items(kind):
                    self._add(kind, binding)
        return self._grants

    def _add(self, kind: Kind, binding: Json) -> None:
        meta, reference = binding["metadata"], binding.get("roleRef", {})
        namespace = meta.get("namespace", "")
        assert self._grants is not None
        name = f"{meta['name']}/{namespace}" if namespace else meta["name"]
        role = f'{reference.get("kind", "")} "{reference.get("name", "")}"'
        rules = self.rules_of(reference, namespace) or ()
        told = f'{kind.kind} "{name}" of {role}'
        grant = _Grant(binding.get("subjects") or (), rules, namespace, told)
        self._grants.setdefault(namespace, []).append(grant)

    def _changed(self, change: StorageChange) -> None:
        if change.kind.resource in _RESOURCES:
            self._grants = None


def refusal(asked: AuthorizationAttributes, reason: str = "") -> ApiError:
    """403: the user may not; `reason` is added where somebody knows more."""
    # upstream: apiserver/pkg/endpoints/handlers/responsewriters/errors.go:forbiddenMessage
    user = f'User "{asked.user.name}" cannot {asked.verb}'
    why = f": {reason}" if reason else ""
    if not asked.is_resource:
        message = f'forbidden: {user} path "{asked.path}"{why}'
        return ApiError("Forbidden", 403, message, has_details=True)
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    text = f'{user} resource "{resource}" in API group "{asked.group}" {where}{why}'
    kind = Kind(asked.group, asked.version, asked.resource, asked.resource)
    if asked.name:
        return forbidden(kind, asked.namespace, asked.name, text)
    return ApiError("Forbidden", 403, f"{kind.resource} is forbidden: {text}", kind=kind)


def _located(asked: AuthorizationAttributes) -> AuthorizationAttributes:
    """A namespace counts as being in itself, so that a binding in it may be about it."""
    # upstream: apiserver/pkg/endpoints/request/requestinfo.go:NewRequestInfo
    is_one = bool(asked.name) and asked.verb not in ("list", "watch")
    if asked.resource == "namespaces" and not asked.group and is_one:
        return replace(asked, namespace=asked.name)
    return asked


def _is_subject(subject: Json, user: User, namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return user.name == f"{SERVICE_ACCOUNT_PREFIX}{home}:{name}"
        case _:
            return False


def _described(subject: Json, namespace: str) -> str:
    kind, name = subject["kind"], subject["name"]
    if kind == "ServiceAccount":
        return f'{kind} "{name}/{subject.get("namespace") or namespace}"'
    return f'{kind} "{name}"'
