"""Impersonation: whoever may, asks as somebody else.

upstream: apiserver/pkg/endpoints/filters/impersonation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fairlead.apiserver.auth.rbac import SERVICE_ACCOUNT_PREFIX, refusal
from fairlead.apiserver.auth.token import ANONYMOUS
from fairlead.apiserver.error import ApiError, internal_error
from fairlead.apiserver.request import AUTHENTICATED, User
from fairlead.apiserver.serving.identity import Attributes, Authorize

USER: Final = "impersonate-user"
GROUP: Final = "impersonate-group"
UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
# upstream: the verb that constrained impersonation asks for last, so refusals name it
_ON_BEHALF: Final = "impersonate-on:user-info:"


def impersonated(asked: Attributes, headers: Mapping[str, str], authorize: Authorize) -> User:
    """Who the request is from: its user, or whom it names instead.

    Raises ApiError: 403 for whoever may not do that, 500 where it is not said who.
    """
    name = headers.get(USER, "")
    if not name:
        if any(header in (GROUP, UID) or header.startswith(_EXTRA) for header in headers):
            raise internal_error("requested impersonation without impersonating a user")
        return asked.user
    groups = tuple(filter(None, (part.strip() for part in headers.get(GROUP, "").split(","))))
    try:
        authorize(_wish(asked.user, name))
        for group in groups:
            authorize(Attributes(asked.user, "impersonate", resource="groups", name=group))
    except ApiError:
        raise refusal(replace(asked, verb=f"{_ON_BEHALF}{asked.verb}")) from None
    return User(name=name, groups=groups or _usual_groups(name), uid=headers.get(UID, ""))


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every account of a namespace."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)


def _wish(user: User, name: str) -> Attributes:
    if name.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace, _, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        return Attributes(
            user, "impersonate", resource="serviceaccounts", namespace=namespace, name=account
        )
    return Attributes(user, "impersonate", resource="users", name=name)


def _usual_groups(name: str) -> tuple[str, ...]:
    if name == ANONYMOUS.name:
        return ANONYMOUS.groups
    if name.startswith(SERVICE_ACCOUNT_PREFIX):
        return service_account_groups(name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")[0])
    return (AUTHENTICATED,)
