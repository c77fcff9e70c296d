"""Impersonation: applies Impersonate-* headers after checking the user's permissions.

Each value in the headers (user, groups, uid, extra) needs its own permission. The verbs are:

    impersonate:user-info         impersonate a user
    impersonate:serviceaccount    impersonate a service account, without groups, uid or extra
    impersonate:arbitrary-node    impersonate a node, without groups, uid or extra
    impersonate                   impersonate anyone (legacy)

With one of the first three verbs, the user also needs a permission for the requested resource. For
example, a list request needs the verb `impersonate-on:user-info:list` on the listed resource. The
legacy verb, which is tried last, needs no second permission.

upstream: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace

from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.auth.authentication.token import ANONYMOUS
from fairlead.apiserver.auth.authorization.node_authorizer import NODES_GROUP
from fairlead.apiserver.auth.authorization.node_authorizer import USER_PREFIX as NODE_PREFIX
from fairlead.apiserver.auth.authorization.rbac import refusal
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorize
from fairlead.apiserver.auth.service_account_user import (
    SERVICE_ACCOUNT_PREFIX,
    service_account_groups,
)
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.request import (
    AUTHENTICATED,
    SEPARATOR,
    SYSTEM_MASTERS,
    UNAUTHENTICATED,
    User,
)
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems

USER: Final = "impersonate-user"
GROUP: Final = "impersonate-group"
UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_VERB: Final = "impersonate"
_NODE: Final = "arbitrary-node"
_GROUP: Final = "authentication.k8s.io"


def impersonated(
    attributes: AuthorizationAttributes, headers: Mapping[str, str], authorize: Authorize
) -> User:
    """Return the impersonated user; if `headers` name none, return the authenticated user.

    Raises ApiError 403 if a permission is missing. Raises ApiError 400 for headers without a user
    name.
    """
    name = headers.get(USER, "")
    if not name:
        if GROUP in headers or UID in headers or _extra(headers):
            user_text = _go_user(headers)
            raise bad_request(f"requested {user_text} without impersonating a user name")
        return attributes.user
    groups = tuple(headers[GROUP].split(SEPARATOR)) if GROUP in headers else ()
    target = User(name=name, groups=groups, uid=headers.get(UID, ""), extra=_extra(headers))
    mode = _constrained_mode(target)
    if not mode:
        return _by_legacy_permission(attributes, target, authorize)
    try:
        return _by_constrained_permission(attributes, target, mode, authorize)
    except ApiError as refused:
        try:
            return _by_legacy_permission(attributes, target, authorize)
        except ApiError:
            raise refused from None


def _by_constrained_permission(
    attributes: AuthorizationAttributes, target: User, mode: str, authorize: Authorize
) -> User:
    """Return `target` with its effective groups, if the requesting user may impersonate `target`.

    `mode` is a part of the required verbs. For example, to list pods with the mode `user-info`, the
    requesting user needs the verb `impersonate:user-info` for each value of `target`, and the verb
    `impersonate-on:user-info:list` for pods. Raises ApiError 403 if a permission is missing.
    """
    authorize(replace(attributes, verb=f"{_VERB}-on:{mode}:{attributes.verb}"))
    values = (*target.groups, *target.extra, *chain.from_iterable(target.extra.values()))
    if SYSTEM_MASTERS in target.groups or "" in values:
        raise refusal(
            AuthorizationAttributes(
                attributes.user, f"{_VERB}:{mode}", group=_GROUP, resource="groups"
            )
        )
    for permission in _required_permissions(attributes.user, target):
        authorize(replace(permission, verb=f"{_VERB}:{mode}", group=_GROUP))
    return replace(
        target, groups=_effective_groups(target, (NODES_GROUP,) if mode == _NODE else ())
    )


def _by_legacy_permission(
    attributes: AuthorizationAttributes, target: User, authorize: Authorize
) -> User:
    """Return `target` with its effective groups, if the requesting user may impersonate `target`.

    Raises ApiError 403 if the requesting user lacks a legacy permission (verb `impersonate`) for
    `target`.
    """
    for permission in _required_permissions(attributes.user, target):
        # The legacy permission treats nodes as ordinary users.
        is_node = permission.resource == "nodes"
        authorize(
            replace(permission, resource="users", name=target.name) if is_node else permission
        )
    return replace(target, groups=_effective_groups(target))


def _extra(headers: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {
        unquote(header.removeprefix(_EXTRA)): tuple(text.split(SEPARATOR))
        for header, text in headers.items()
        if header.startswith(_EXTRA)
    }


def _required_permissions(user: User, target: User) -> Iterator[AuthorizationAttributes]:
    """Yield the permissions that `user` needs to impersonate `target`."""
    account, node = _account(target.name), _node(target.name)
    if account:
        namespace, name = account
        yield AuthorizationAttributes(
            user, _VERB, resource="serviceaccounts", namespace=namespace, name=name
        )
    elif node:
        yield AuthorizationAttributes(user, _VERB, resource="nodes", name=node)
    else:
        yield AuthorizationAttributes(user, _VERB, resource="users", name=target.name)
    if target.uid:
        yield AuthorizationAttributes(user, _VERB, group=_GROUP, resource="uids", name=target.uid)
    for group in target.groups:
        yield AuthorizationAttributes(user, _VERB, resource="groups", name=group)
    for key, values in target.extra.items():
        for value in values:
            yield AuthorizationAttributes(
                user, _VERB, group=_GROUP, resource="userextras", subresource=key, name=value
            )


def _node(name: str) -> str:
    """Return the node whose kubelet has the user name `name`; "" if no kubelet has this name."""
    node = name.removeprefix(NODE_PREFIX)
    return node if name.startswith(NODE_PREFIX) and not dns_subdomain_problems(node) else ""


def _account(name: str) -> tuple[str, str] | None:
    """Return (namespace, name) of the service account with the user name `name`, or None."""
    # upstream: apiserver/pkg/authentication/serviceaccount/util.go:SplitUsername
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    is_account = name.startswith(SERVICE_ACCOUNT_PREFIX) and len(parts) == 2 and all(parts)
    return (parts[0], parts[1]) if is_account else None


def _go_user(headers: Mapping[str, str]) -> str:
    """Return the user in `headers`, but with an empty name, in the format of Go's `%#v`."""
    groups = headers[GROUP].split(SEPARATOR) if GROUP in headers else ()
    extra = (
        f"{quoted(key)}:{_go_strings(values)}" for key, values in sorted(_extra(headers).items())
    )
    entries = ", ".join(extra)
    extra_text = f"{{{entries}}}" if entries else "(nil)"
    identity = f'Name:"", UID:{quoted(headers.get(UID, ""))}, Groups:{_go_strings(groups)}'
    return f"&user.DefaultInfo{{{identity}, Extra:map[string][]string{extra_text}}}"


def _go_strings(values: Sequence[str]) -> str:
    """Return the text that Go prints for a slice of strings."""
    return f"[]string{{{', '.join(map(quoted, values))}}}" if values else "[]string(nil)"


def _constrained_mode(target: User) -> str:
    """Return the mode for impersonating `target`: the part of the verb after `impersonate:`.

    Return "" if only the legacy verb `impersonate` applies.
    """
    is_name_alone = not (target.groups or target.uid or target.extra)
    if _node(target.name):
        return _NODE if is_name_alone else ""
    if _account(target.name):
        return "serviceaccount" if is_name_alone else ""
    return "user-info"


def _effective_groups(target: User, default_groups: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the groups of the impersonated user, including the groups that the user name implies.

    `default_groups` are used if `target` has no groups and is not a service account.
    """
    account = _account(target.name)
    if account and not target.groups:
        return service_account_groups(account[0])
    groups = target.groups or default_groups
    authentication_group = UNAUTHENTICATED if target.name == ANONYMOUS.name else AUTHENTICATED
    if authentication_group in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, authentication_group)
