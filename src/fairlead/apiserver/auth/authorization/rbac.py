"""The RBAC authorizer: evaluates the roles and bindings in storage.

A request is allowed if a rule of a role allows it. The role must be bound to the user or to a group
of the user. Members of `system:masters` may do everything.

upstream: plugin/pkg/auth/authorizer/rbac/rbac.go,
pkg/registry/rbac/validation/rule.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.apiserver.auth.authorization.policy_rule import allows
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes
from fairlead.apiserver.auth.service_account_user import SERVICE_ACCOUNT_PREFIX
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Kind,
)
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage, StoredChange

_KINDS: Final = (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)
_RESOURCES: Final = frozenset(kind.resource for kind in _KINDS)


class _Grant(Struct, frozen=True):
    """The subjects of a binding, and the rules of its role.

    `namespace` is the namespace of the binding, "" for a ClusterRoleBinding. `description` names
    the binding and its role.
    """

    subjects: Sequence[Json]
    rules: Sequence[Json]
    namespace: str
    description: str

    def matching_subject(self, user: User) -> str:
        """Return the subject that matches the user, such as `User "bob"`; "" if none matches."""
        for subject in self.subjects:
            if _is_subject(subject, user, self.namespace):
                return _subject_text(subject, self.namespace)
        return ""


# An authorizer that `Rbac` calls before it evaluates roles. It returns its decision. If it makes no
# decision, it returns the reason as text; "" if it does not apply to the request. RBAC adds this
# text to the reason of a refusal.
PrecedingAuthorizer = Callable[[AuthorizationAttributes], AccessDecision | str]


class Rbac:
    """The RBAC authorizer. Other authorizers can decide on a request before RBAC does."""

    def __init__(self, storage: Storage, preceding: Sequence[PrecedingAuthorizer] = ()) -> None:
        """`storage` contains the roles and bindings.

        The authorizers in `preceding` are called before RBAC, in order.
        """
        self._storage = storage
        self._preceding = tuple(preceding)
        self._grants: dict[str, list[_Grant]] | None = None
        storage.subscribe(self._changed, _RESOURCES.__contains__)

    def __call__(self, attributes: AuthorizationAttributes) -> None:
        """Return None if the request is allowed. Raises ApiError 403 if it is not."""
        attributes = _in_own_namespace(attributes)
        verdict = self.verdict(attributes)
        if not verdict.allowed:
            raise refusal(attributes, verdict.reason)

    def verdict(self, attributes: AuthorizationAttributes) -> AccessDecision:
        """Return the decision on a request: whether it is allowed, and the reason."""
        if SYSTEM_MASTERS in attributes.user.groups:
            return AccessDecision(allowed=True)
        reasons = []
        for opinion in (preceding(attributes) for preceding in self._preceding):
            if isinstance(opinion, AccessDecision):
                return opinion
            reasons.append(opinion)
        for grant, subject in self._granted(attributes.user, attributes.namespace):
            if any(allows(rule, attributes) for rule in grant.rules):
                reason = f"RBAC: allowed by {grant.description} to {subject}"
                return AccessDecision(allowed=True, reason=reason)
        return AccessDecision(allowed=False, reason="\n".join(filter(None, reasons)))

    def rules_for(self, user: User, namespace: str) -> list[Json]:
        """Return all rules that apply to the user in `namespace`.

        If `namespace` is "", return only the rules that apply to the whole cluster.
        """
        return [rule for grant, _ in self._granted(user, namespace) for rule in grant.rules]

    def rules_of(self, reference: Json, namespace: str) -> list[Json] | None:
        """Return the rules of the role in `reference`, the roleRef of a binding in `namespace`.

        Return None if the role does not exist.
        """
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
                subject = grant.matching_subject(user)
                if subject:
                    yield grant, subject

    def _read(self) -> dict[str, list[_Grant]]:
        """Return the grants, keyed by namespace. The key of cluster-wide grants is ""."""
        if self._grants is not None:
            return self._grants
        self._grants = {}
        for kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
            for binding in self._storage.items(kind):
                meta, reference = binding["metadata"], binding.get("roleRef", {})
                namespace = meta.get("namespace", "")
                name = f"{meta['name']}/{namespace}" if namespace else meta["name"]
                role = f'{reference.get("kind", "")} "{reference.get("name", "")}"'
                rules = self.rules_of(reference, namespace) or ()
                description = f'{kind.kind} "{name}" of {role}'
                grant = _Grant(binding.get("subjects") or (), rules, namespace, description)
                self._grants.setdefault(namespace, []).append(grant)
        return self._grants

    def _changed(self, _: StoredChange) -> None:
        self._grants = None


def refusal(attributes: AuthorizationAttributes, reason: str = "") -> ApiError:
    """Return ApiError 403: the user may not make this request. The message ends with `reason`."""
    # upstream: apiserver/pkg/endpoints/handlers/responsewriters/errors.go:forbiddenMessage
    user = f'User "{attributes.user.name}" cannot {attributes.verb}'
    explanation = f": {reason}" if reason else ""
    if not attributes.is_resource:
        message = f'forbidden: {user} path "{attributes.path}"{explanation}'
        return ApiError("Forbidden", 403, message, has_details=True)
    resource = (
        f"{attributes.resource}/{attributes.subresource}"
        if attributes.subresource
        else attributes.resource
    )
    where = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    text = f'{user} resource "{resource}" in API group "{attributes.group}" {where}{explanation}'
    kind = Kind(attributes.group, attributes.version, attributes.resource, attributes.resource)
    if attributes.name:
        return forbidden(kind, attributes.namespace, attributes.name, text)
    return ApiError("Forbidden", 403, f"{kind.resource} is forbidden: {text}", kind=kind)


def _in_own_namespace(attributes: AuthorizationAttributes) -> AuthorizationAttributes:
    """Return `attributes` with the namespace in which RBAC decides on the request.

    If the request is for one Namespace object, RBAC decides in the namespace of that name.
    Otherwise, `attributes` are unchanged.
    """
    # upstream: apiserver/pkg/endpoints/request/requestinfo.go:NewRequestInfo
    is_one = bool(attributes.name) and attributes.verb not in ("list", "watch")
    if attributes.resource == "namespaces" and not attributes.group and is_one:
        return replace(attributes, namespace=attributes.name)
    return attributes


def _is_subject(subject: Json, user: User, namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            account_namespace = subject.get("namespace") or namespace
            return user.name == f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}"
        case _:
            return False


def _subject_text(subject: Json, namespace: str) -> str:
    kind, name = subject["kind"], subject["name"]
    if kind == "ServiceAccount":
        return f'{kind} "{name}/{subject.get("namespace") or namespace}"'
    return f'{kind} "{name}"'


def aggregated_rules(role: Json, storage: Storage) -> list[Json]:
    """Return the rules of `role` and of all roles that its aggregation rule selects, recursively.

    Upstream's aggregation controller writes these rules into the role.
    """
    rules: dict[str, Json] = {}
    visited = {_role_name(role)}
    to_visit = [role]
    while to_visit:
        one = to_visit.pop()
        rules.update((repr(rule), rule) for rule in one.get("rules") or ())
        newly_found = [
            other for other in _aggregated_roles(one, storage) if _role_name(other) not in visited
        ]
        visited.update(map(_role_name, newly_found))
        to_visit += reversed(newly_found)
    return list(rules.values())


def _role_name(role: Json) -> str:
    name: str = role["metadata"]["name"]
    return name


def _aggregated_roles(role: Json, storage: Storage) -> list[Json]:
    """Return the roles that the aggregation rule of `role` selects, sorted by name."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    if not selectors:
        return []
    return [
        other
        for other in storage.items(CLUSTER_ROLE)
        if any(_matches_labels(one, other) for one in selectors)
    ]


def _matches_labels(selector: Json, role: Json) -> bool:
    return selector_matches(decode_as(LabelSelector, selector), role["metadata"].get("labels", {}))
