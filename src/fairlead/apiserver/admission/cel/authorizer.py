"""`authorizer` in expressions: whether whoever asks may do something else.

    authorizer.group("apps").resource("deployments").namespace("n").check("create").allowed()
    authorizer.requestResource.check("approve").allowed()
    authorizer.serviceAccount("n", "builder").path("/metrics").check("get").reason()

What is asked about is put together as a map, step by step; `check` asks the server's authorizer,
which is known while an expression is evaluated (`judging`) and at no other time.

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
class Judge:
    """Whom an authorizer is asked about, and which."""

    rights: Authorizer | None
    user: User


# The one of the evaluation that is under way: the library calls functions without saying which.
_JUDGES: Final[list[Judge]] = []


@contextmanager
def judging(judge: Judge | None) -> Iterator[None]:
    """Let `check` ask `judge` in the block; without one it answers nothing."""
    if judge is None:
        yield
        return
    _JUDGES.append(judge)
    try:
        yield
    finally:
        _JUDGES.pop()


def authorizer(request: Json) -> Value:
    """The value of the variable, for a request as admission tells of it."""
    resource = request["requestResource"]
    asked = {
        "group": resource["group"],
        "version": resource["version"],
        "resource": resource["resource"],
        "subresource": request.get("requestSubResource", ""),
        "namespace": request.get("namespace", ""),
        "name": request.get("name", ""),
    }
    return {"requestResource": asked}


def _with(key: str) -> Callable[[Value, str], Value]:
    """A step that says `key` of what is asked about."""
    return lambda value, text: {**value, key: text}


def _as_account(value: Value, namespace: str, name: str) -> Value:
    return {**value, "account": f"{namespace}:{name}"}


def _check(value: Value, verb: str) -> Value:
    if not _JUDGES:
        raise ValueError("there is nobody to ask")
    judge = _JUDGES[-1]
    if judge.rights is None:
        return {"allowed": True, "reason": ""}
    keys = ("path", "group", "version", "resource", "subresource", "namespace", "name")
    about = {key: str(value[key]) for key in keys if value.get(key)}
    if value.get("resource") and "version" not in about:
        about["version"] = "*"
    verdict = judge.rights.verdict(AuthorizationAttributes(_user(value, judge), verb, **about))
    return {"allowed": verdict.allowed, "reason": verdict.reason}


def _user(value: Value, judge: Judge) -> User:
    account = value.get("account")
    if not account:
        return judge.user
    namespace = account.partition(":")[0]
    return authenticated(f"{_ACCOUNT}:{account}", (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}"))


def _told(key: str, otherwise: Any) -> Callable[[Value], Any]:
    return lambda value: value.get(key, otherwise)


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        member(name, VALUE, (VALUE, TEXT), _with(name))
        for name in ("group", "resource", "subresource", "namespace", "name", "path")
    ),
    member("serviceAccount", VALUE, (VALUE, TEXT, TEXT), _as_account),
    member("check", VALUE, (VALUE, TEXT), _check),
    member("allowed", TRUTH, (VALUE,), _told("allowed", otherwise=False)),
    member("reason", TEXT, (VALUE,), _told("reason", otherwise="")),
    member("errored", TRUTH, (VALUE,), _told("error", otherwise=False)),
    member("error", TEXT, (VALUE,), lambda _: ""),
)
