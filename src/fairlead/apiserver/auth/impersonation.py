"""Impersonation: whoever may, asks as somebody else.

Each thing that is said of that somebody (name, groups, uid, extra) is a right of its own.

upstream: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace

from fairlead.apiserver.auth.node import USER_PREFIX as NODE_PREFIX
from fairlead.apiserver.auth.rbac import SERVICE_ACCOUNT_PREFIX, refusal
from fairlead.apiserver.auth.token import ANONYMOUS
from fairlead.apiserver.error import ApiError, internal_error
from fairlead.apiserver.request import AUTHENTICATED, SEPARATOR, UNAUTHENTICATED, User
from fairlead.apiserver.serving.identity import Attributes, Authorize

USER: Final = "impersonate-user"
GROUP: Final = "impersonate-group"
UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
_VERB: Final = "impersonate"
# upstream: the verb that constrained impersonation asks for first, so refusals name it
_ON_BEHALF: Final = "impersonate-on"
_GROUP: Final = "authentication.k8s.io"


def impersonated(asked: Attributes, headers: Mapping[str, str], authorize: Authorize) -> User:
    """Who the request is from: its user, or whom it names instead.

    Raises ApiError: 403 for whoever may not do that, 500 where it is not said who.
    """
    name = headers.get(USER, "")
    if not name:
        if GROUP in headers or UID in headers or _extra(headers):
            raise internal_error("requested impersonation without impersonating a user")
        return asked.user
    groups = tuple(headers[GROUP].split(SEPARATOR)) if GROUP in headers else ()
    wanted = User(name=name, groups=groups, uid=headers.get(UID, ""), extra=_extra(headers))
    try:
        for wish in _wishes(asked.user, wanted):
            authorize(wish)
    except ApiError:
        mode = _mode(wanted)
        if not mode:
            raise
        raise refusal(replace(asked, verb=f"{_ON_BEHALF}:{mode}:{asked.verb}")) from None
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


def _wishes(user: User, wanted: User) -> Iterator[Attributes]:
    """What `user` must be allowed for."""
    account = _account(wanted.name)
    if account:
        namespace, name = account
        yield Attributes(user, _VERB, resource="serviceaccounts", namespace=namespace, name=name)
    else:
        yield Attributes(user, _VERB, resource="users", name=wanted.name)
    if wanted.uid:
        yield Attributes(user, _VERB, group=_GROUP, resource="uids", name=wanted.uid)
    for group in wanted.groups:
        yield Attributes(user, _VERB, resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(
                user, _VERB, group=_GROUP, resource="userextras", subresource=key, name=value
            )


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user that is, None if it is none's."""
    # upstream: apiserver/pkg/authentication/serviceaccount/util.go:SplitUsername
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    is_account = name.startswith(SERVICE_ACCOUNT_PREFIX) and len(parts) == 2 and all(parts)
    return (parts[0], parts[1]) if is_account else None


def _mode(wanted: User) -> str:
    """Which constrained impersonation it would be, "" for none."""
    is_name_alone = not (wanted.groups or wanted.uid or wanted.extra)
    if wanted.name.startswith(NODE_PREFIX):
        return "arbitrary-node" if is_name_alone else ""
    if _account(wanted.name):
        return "serviceaccount" if is_name_alone else ""
    return "user-info"


def _groups(wanted: User) -> tuple[str, ...]:
    """The groups of whoever is impersonated, with those that follow from who it is."""
    account = _account(wanted.name)
    if account and not wanted.groups:
        return service_account_groups(account[0])
    standing = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if standing in wanted.groups or UNAUTHENTICATED in wanted.groups:
        return wanted.groups
    return (*wanted.groups, standing)
