"""The CEL library `authorizer`: checks what the requesting user, or a service account, may do.

    authorizer.group("apps").resource("deployments").namespace("n").check("create").allowed()
    authorizer.requestResource.check("approve").allowed()
    authorizer.serviceAccount("n", "builder").path("/metrics").check("get").reason()

Each call returns a map with one more field of the check. `check` calls the server's authorizer,
which is bound for the duration of an evaluation (`bound_authorizer`).

upstream: apiserver/pkg/cel/library/authz.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.request import User
from fairlead.cel.function import TEXT, TRUTH, VALUE, Function, Value, member

_ACCOUNTS: Final = "system:serviceaccounts"
_ACCOUNT: Final = "system:serviceaccount"


@dataclass(frozen=True, slots=True)
class RequesterAuthorizer:
    """The requesting user and the authorizer to check; without one everything is allowed."""

    rights: Authorizer | None
    user: User


# The authorizer of the current evaluation: CEL functions get only their arguments.
_BOUND: Final[list[RequesterAuthorizer]] = []


@contextmanager
def bound_authorizer(requester: RequesterAuthorizer | None) -> Iterator[None]:
    """Binds the authorizer that `check` uses within the block; None binds none."""
    if requester is None:
        yield
        return
    _BOUND.append(requester)
    try:
        yield
    finally:
        _BOUND.pop()


def authorizer(request: Json) -> Value:
    """The value of the CEL variable, for an AdmissionRequest."""
    resource = request["requestResource"]
    resource_check = {
        "group": resource["group"],
        "version": resource["version"],
        "resource": resource["resource"],
        "subresource": request.get("requestSubResource", ""),
        "namespace": request.get("namespace", ""),
        "name": request.get("name", ""),
    }
    return {"requestResource": resource_check}


def _set_field(key: str) -> Callable[[Value, str], Value]:
    """A function that sets `key` of a check."""
    return lambda value, text: {**value, key: text}


def _set_service_account(value: Value, namespace: str, name: str) -> Value:
    return {**value, "account": f"{namespace}:{name}"}


def _check(value: Value, verb: str) -> Value:
    if not _BOUND:
        raise ValueError("no authorizer is bound")
    requester = _BOUND[-1]
    if requester.rights is None:
        return {"allowed": True, "reason": ""}
    keys = ("path", "group", "version", "resource", "subresource", "namespace", "name")
    attributes = {key: str(value[key]) for key in keys if value.get(key)}
    if value.get("resource") and "version" not in attributes:
        attributes["version"] = "*"
    verdict = requester.rights.verdict(
        AuthorizationAttributes(_user(value, requester), verb, **attributes)
    )
    return {"allowed": verdict.allowed, "reason": verdict.reason}


def _user(value: Value, requester: RequesterAuthorizer) -> User:
    account = value.get("account")
    if not account:
        return requester.user
    namespace = account.partition(":")[0]
    return authenticated(f"{_ACCOUNT}:{account}", (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}"))


def _result_field(key: str, otherwise: Any) -> Callable[[Value], Any]:
    return lambda value: value.get(key, otherwise)


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        member(name, VALUE, (VALUE, TEXT), _set_field(name))
        for name in ("group", "resource", "subresource", "namespace", "name", "path")
    ),
    member("serviceAccount", VALUE, (VALUE, TEXT, TEXT), _set_service_account),
    member("check", VALUE, (VALUE, TEXT), _check),
    member("allowed", TRUTH, (VALUE,), _result_field("allowed", otherwise=False)),
    member("reason", TEXT, (VALUE,), _result_field("reason", otherwise="")),
    member("errored", TRUTH, (VALUE,), _result_field("error", otherwise=False)),
    member("error", TEXT, (VALUE,), lambda _: ""),
)
