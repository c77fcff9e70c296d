"""The CEL library `authorizer`: checks permissions of the requesting user or a service account.

    authorizer.group("apps").resource("deployments").namespace("n").check("create").allowed()
    authorizer.requestResource.check("approve").allowed()
    authorizer.serviceAccount("n", "builder").path("/metrics").check("get").reason()

upstream: apiserver/pkg/cel/library/authz.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.request import User
from fairlead.cel.function import Function, member

_ACCOUNTS: Final = "system:serviceaccounts"
_ACCOUNT: Final = "system:serviceaccount"
_CHECK_COST: Final = 350_000
_PARTS: Final = ("group", "resource", "subresource", "namespace", "name", "path")


class RequesterAuthorizer(Struct, frozen=True):
    """The requesting user, and the server's authorizer (`rights`).

    If `rights` is None, the user has all permissions.
    """

    rights: Authorizer | None
    user: User


class AuthorizerCheck(Struct, frozen=True):
    """An access check, with the attributes that the expression has set so far.

    If the request has no user, `requester` is None and the function `check` fails.
    """

    requester: RequesterAuthorizer | None
    attributes: Mapping[str, str] = field(default_factory=dict)
    type_name: ClassVar[str] = "kubernetes.authorization.ResourceCheck"


class AuthorizerDecision(Struct, frozen=True):
    """The authorizer's decision on an access check."""

    allowed: bool
    reason: str = ""
    type_name: ClassVar[str] = "kubernetes.authorization.Decision"


def authorizer_variables(
    request: Json, requester: RequesterAuthorizer | None
) -> dict[str, AuthorizerCheck]:
    """Return the CEL variables `authorizer` and `authorizer.requestResource`.

    `request` is the AdmissionRequest.
    """
    resource = request["requestResource"]
    attributes = {
        "group": resource["group"],
        "version": resource["version"],
        "resource": resource["resource"],
        "subresource": request.get("requestSubResource", ""),
        "namespace": request.get("namespace", ""),
        "name": request.get("name", ""),
    }
    return {
        "authorizer": AuthorizerCheck(requester),
        "authorizer.requestResource": AuthorizerCheck(requester, attributes),
    }


def _set_attribute(key: str) -> Callable[[AuthorizerCheck, str], AuthorizerCheck]:
    """Return a function of (check, text), which returns the check with `key` set to the text."""
    return lambda check, text: replace(check, attributes={**check.attributes, key: text})


def _set_service_account(check: AuthorizerCheck, namespace: str, name: str) -> AuthorizerCheck:
    return replace(check, attributes={**check.attributes, "account": f"{namespace}:{name}"})


def _check(check: AuthorizerCheck, verb: str) -> AuthorizerDecision:
    requester = check.requester
    if requester is None:
        raise ValueError("the request has no user")
    if requester.rights is None:
        return AuthorizerDecision(allowed=True)
    keys = ("version", *_PARTS)
    attributes = {key: check.attributes[key] for key in keys if check.attributes.get(key)}
    if check.attributes.get("resource") and "version" not in attributes:
        attributes["version"] = "*"
    verdict = requester.rights.verdict(
        AuthorizationAttributes(_user(check, requester), verb, **attributes)
    )
    return AuthorizerDecision(verdict.allowed, verdict.reason)


def _user(check: AuthorizerCheck, requester: RequesterAuthorizer) -> User:
    account = check.attributes.get("account")
    if not account:
        return requester.user
    namespace = account.partition(":")[0]
    return authenticated(f"{_ACCOUNT}:{account}", (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}"))


def _check_cost(*_: Any) -> int:
    return _CHECK_COST


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(member(name, (AuthorizerCheck, str), _set_attribute(name)) for name in _PARTS),
    member("serviceAccount", (AuthorizerCheck, str, str), _set_service_account),
    member("check", (AuthorizerCheck, str), _check, _check_cost),
    member("allowed", (AuthorizerDecision,), lambda decision: decision.allowed),
    member("reason", (AuthorizerDecision,), lambda decision: decision.reason),
    member("errored", (AuthorizerDecision,), lambda _: False),
    member("error", (AuthorizerDecision,), lambda _: ""),
)
