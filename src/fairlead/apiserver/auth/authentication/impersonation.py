"""Impersonation: whoever may, asks as somebody else.

Each thing that is said of that somebody (name, groups, uid, extra) is a right of its own, and there
are two kinds of such rights:

    impersonate:user-info            to be that user, for what impersonate-on:user-info:VERB allows
    impersonate:serviceaccount       to be an account whose name alone is said, likewise
    impersonate:arbitrary-node       to be a node, likewise
    impersonate                      to be anybody, for everything; asked for last

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
from fairlead.apiserver.auth.authorization.node import NODES_GROUP
from fairlead.apiserver.auth.authorization.node import USER_PREFIX as NODE_PREFIX
from fairlead.apiserver.auth.authorization.rbac import SERVICE_ACCOUNT_PREFIX, refusal
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorize
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
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
_VERB: Final = "impersonate"
_NODE: Final = "arbitrary-node"
_GROUP: Final = "authentication.k8s.io"


def impersonated(
    asked: AuthorizationAttributes, headers: Mapping[str, str], authorize: Authorize
) -> User:
    """Who the request is from: its user, or whom it names instead.

    Raises ApiError: 403 for whoever may not do that, 400 where it is not said who.
    """
    name = headers.get(USER, "")
    if not name:
        if GROUP in headers or UID in headers or _extra(headers):
            whom = _shown(headers)
            raise bad_request(f"requested {whom} without impersonating a user name")
        return asked.user
    groups = tuple(headers[GROUP].split(SEPARATOR)) if GROUP in headers else ()
    wanted = User(name=name, groups=groups, uid=headers.get(UID, ""), extra=_extra(headers))
    mode = _mode(wanted)
    if not mode:
        return _impersonated(asked, wanted, authorize)
    try:
        return _constrained(asked, wanted, mode, authorize)
    except ApiError as refused:
        try:
            return _impersonated(asked, wanted, authorize)
        except ApiError:
            raise refused from None


def _constrained(
    asked: AuthorizationAttributes, wanted: User, mode: str, authorize: Authorize
) -> User:
    """`wanted` for what is asked alone. Raises ApiError 403."""
    authorize(replace(asked, verb=f"{_VERB}-on:{mode}:{asked.verb}"))
    said = (*wanted.groups, *wanted.extra, *chain.from_iterable(wanted.extra.values()))
    if SYSTEM_MASTERS in wanted.groups or "" in said:
        raise refusal(
            AuthorizationAttributes(asked.user, f"{_VERB}:{mode}", group=_GROUP, resource="groups")
        )
    for wish in _wishes(asked.user, wanted):
        authorize(replace(wish, verb=f"{_VERB}:{mode}", group=_GROUP))
    return replace(wanted, groups=_groups(wanted, (NODES_GROUP,) if mode == _NODE else ()))


def _impersonated(asked: AuthorizationAttributes, wanted: User, authorize: Authorize) -> User:
    """`wanted` for everything. Raises ApiError 403."""
    for wish in _wishes(asked.user, wanted):
        # The older right knows nodes as any other users.
        is_node = wish.resource == "nodes"
        authorize(replace(wish, resource="users", name=wanted.name) if is_node else wish)
    return replace(wanted, groups=_groups(wanted))


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every account of a namespace."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)


def _extra(headers: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {
        unquote(header.removeprefix(_EXTRA)): tuple(text.split(SEPARATOR))
        for header, text in headers.items()
        if header.startswith(_EXTRA)
    }


def _wishes(user: User, wanted: User) -> Iterator[AuthorizationAttributes]:
    """What `user` must be allowed for."""
    account, node = _account(wanted.name), _node(wanted.name)
    if account:
        namespace, name = account
        yield AuthorizationAttributes(
            user, _VERB, resource="serviceaccounts", namespace=namespace, name=name
        )
    elif node:
        yield AuthorizationAttributes(user, _VERB, resource="nodes", name=node)
    else:
        yield AuthorizationAttributes(user, _VERB, resource="users", name=wanted.name)
    if wanted.uid:
        yield AuthorizationAttributes(user, _VERB, group=_GROUP, resource="uids", name=wanted.uid)
    for group in wanted.groups:
        yield AuthorizationAttributes(user, _VERB, resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield AuthorizationAttributes(
                user, _VERB, group=_GROUP, resource="userextras", subresource=key, name=value
            )


def _node(name: str) -> str:
    """The node whose user that is, "" if it is none's."""
    node = name.removeprefix(NODE_PREFIX)
    return node if name.startswith(NODE_PREFIX) and not dns_subdomain_problems(node) else ""


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user that is, None if it is none's."""
    # upstream: apiserver/pkg/authentication/serviceaccount/util.go:SplitUsername
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    is_account = name.startswith(SERVICE_ACCOUNT_PREFIX) and len(parts) == 2 and all(parts)
    return (parts[0], parts[1]) if is_account else None


def _shown(headers: Mapping[str, str]) -> str:
    """Somebody without a name, as Go shows a user."""
    groups = headers[GROUP].split(SEPARATOR) if GROUP in headers else ()
    extra = (f"{quoted(key)}:{_strings(told)}" for key, told in sorted(_extra(headers).items()))
    listed = ", ".join(extra)
    more = f"{{{listed}}}" if listed else "(nil)"
    who = f'Name:"", UID:{quoted(headers.get(UID, ""))}, Groups:{_strings(groups)}'
    return f"&user.DefaultInfo{{{who}, Extra:map[string][]string{more}}}"


def _strings(values: Sequence[str]) -> str:
    """As Go shows a slice of them."""
    return f"[]string{{{', '.join(map(quoted, values))}}}" if values else "[]string(nil)"


def _mode(wanted: User) -> str:
    """Which constrained impersonation it would be, "" for none."""
    is_name_alone = not (wanted.groups or wanted.uid or wanted.extra)
    if _node(wanted.name):
        return _NODE if is_name_alone else ""
    if _account(wanted.name):
        return "serviceaccount" if is_name_alone else ""
    return "user-info"


def _groups(wanted: User, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The groups of whoever is impersonated, with those that follow from who it is."""
    account = _account(wanted.name)
    if account and not wanted.groups:
        return service_account_groups(account[0])
    groups = wanted.groups or own
    standing = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if standing in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, standing)
