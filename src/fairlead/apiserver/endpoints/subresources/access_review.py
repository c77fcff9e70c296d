"""Reviews: questions about rights and tokens, posted and answered, never stored.

upstream: pkg/registry/authorization/*/rest.go, pkg/registry/authentication/*/storage.go,
pkg/apis/authorization/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.auth.authorizer import Identity, Verdict
from fairlead.apiserver.endpoints.request_scope import Attributes, Call
from fairlead.apiserver.endpoints.subresources.posted_body import member, posted
from fairlead.apiserver.error import Cause, bad_request, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import Response, User
from fairlead.apiserver.validation.meta.field import invalid as refused

NO_IDENTITY: Final = "this server does not know its users"
NOBODYS: Final = "invalid bearer token"
_ONE_OF: Final = (
    "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
    "specified"
)
_NOT_BOTH: Final = "cannot be specified in combination with resourceAttributes"
_EMPTY: Final = "must be empty"
_UNNAMED: Final = ("namespace", "managedFields")
_MANY: Final = ("list", "watch", "deletecollection")
_NOBODY: Final = 'Invalid value: "": at least one of user or group must be specified'
_AUTHORIZATION: Final = Kind("authorization.k8s.io", "v1", "", "")


def self_subject_access_review(call: Call) -> Response:
    """May I?"""
    body = posted(call, call.kind)
    spec = member(body, "spec")
    _require((*_lacking(spec), *_named(body, _EMPTY)))
    return _reviewed(call, body, spec, call.request.user)


def subject_access_review(call: Call) -> Response:
    """May they? Within one namespace, if the path names one."""
    body = posted(call, call.kind)
    spec = member(body, "spec")
    problems = list(_lacking(spec))
    if not spec.get("user") and not spec.get("groups"):
        problems.append(Cause("FieldValueInvalid", _NOBODY, "spec.user"))
    place = call.target.namespace
    problems += _named(body, f"{_EMPTY} except for namespace" if place else _EMPTY)
    if place:
        problems += _misplaced(spec, member(body, "metadata").get("namespace") or place)
    _require(problems)
    user = User(
        name=spec.get("user", ""), groups=tuple(spec.get("groups", ())), uid=spec.get("uid", "")
    )
    return _reviewed(call, body, spec, user)


def _misplaced(spec: Json, namespace: str) -> Iterator[Cause]:
    """A question about one namespace is about nothing else."""
    about = spec.get("resourceAttributes")
    if about is not None and about.get("namespace", "") != namespace:
        field = "spec.resourceAttributes.namespace"
        yield refused(field, about.get("namespace", ""), "must match metadata.namespace")
    paths = spec.get("nonResourceAttributes")
    if paths is not None:
        why = "disallowed on this kind of request"
        yield refused("spec.nonResourceAttributes", _shown_paths(paths), why)


def self_subject_rules_review(call: Call) -> Response:
    """What may I in a namespace?"""
    spec = member(posted(call, call.kind), "spec")
    namespace = spec.get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = _identity(call).rights.rules_for(call.request.user, namespace)
    status = {
        "resourceRules": [_shown(rule) for rule in rules if rule.get("resources")],
        "nonResourceRules": [_shown(rule) for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    return _answered(call, {"metadata": {}, "spec": {}, "status": status})


def self_subject_review(call: Call) -> Response:
    """Who am I?"""
    posted(call, call.kind)
    meta = {"creationTimestamp": format_timestamp(call.now)}
    status = {"userInfo": user_info(call.request.user)}
    return _answered(call, {"metadata": meta, "status": status})


def token_review(call: Call) -> Response:
    """Whose token is that?"""
    body = posted(call, call.kind)
    spec = member(body, "spec")
    identity, token = _identity(call), spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    wanted = spec.get("audiences") or [identity.issuer]
    user = identity.recognize(token, wanted)
    if user is None:
        status: Json = {"user": {}, "error": NOBODYS}
    else:
        audiences = [name for name in wanted if identity.recognize(token, (name,))]
        status = {"authenticated": True, "user": user_info(user), "audiences": audiences}
    return _answered(call, {"metadata": {}, "spec": spec, "status": status})


def user_info(user: User) -> Json:
    """A user as reviews show them."""
    shown: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {key: value for key, value in shown.items() if value}


# --- rights --------------------------------------------------------------------------------


def _lacking(spec: Json) -> Iterator[Cause]:
    paths = spec.get("nonResourceAttributes")
    if spec.get("resourceAttributes") is None and paths is None:
        yield Cause("FieldValueInvalid", _ONE_OF, "spec.resourceAttributes")
    elif spec.get("resourceAttributes") is not None and paths is not None:
        yield refused("spec.nonResourceAttributes", _shown_paths(paths), _NOT_BOTH)


def _shown_paths(paths: Json) -> Json:
    return {name.capitalize(): paths.get(name, "") for name in ("path", "verb")}


def _named(body: Json, why: str) -> Iterator[Cause]:
    """A question has no name, nor anything else that objects have."""
    meta = member(body, "metadata")
    left = {key: value for key, value in meta.items() if value and key not in _UNNAMED}
    if left:
        yield refused("metadata", left, why)


def _require(problems: Iterable[Cause]) -> None:
    causes = tuple(problems)
    if causes:
        raise invalid(_AUTHORIZATION, "", "", causes)


def _reviewed(call: Call, body: Json, spec: Json, user: User) -> Response:
    verdict = _identity(call).rights.verdict(_asked(spec, user))
    meta = {key: value for key, value in member(body, "metadata").items() if value is not None}
    return _answered(call, {**body, "metadata": meta, "status": _verdict(verdict)})


def _asked(spec: Json, user: User) -> Attributes:
    about = spec.get("resourceAttributes")
    if about is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb", ""), path.get("path", ""))
    return Attributes(
        user,
        about.get("verb", ""),
        "",
        about.get("group", ""),
        about.get("version", ""),
        about.get("resource", ""),
        about.get("subresource", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        _selector(about),
    )


def _selector(about: Json) -> str:
    """Which fields of many objects are asked about, as the selector of a request says it."""
    # upstream: pkg/registry/authorization/util/helpers.go:ResourceAttributesFrom
    said = about.get("fieldSelector") or {}
    if about.get("verb") not in _MANY:
        return ""
    terms = [
        f"{one.get('key', '')}={one['values'][0]}"
        for one in said.get("requirements") or ()
        if one.get("operator") == "In" and len(one.get("values") or ()) == 1
    ]
    return ",".join(terms) or str(said.get("rawSelector") or "")


def _verdict(verdict: Verdict) -> Json:
    shown: Json = {"allowed": verdict.allowed}
    return {**shown, "reason": verdict.reason} if verdict.reason else shown


def _shown(rule: Json) -> Json:
    names = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return {name: rule[name] for name in names if rule.get(name)}


def _identity(call: Call) -> Identity:
    if call.parts.identity is None:
        raise bad_request(NO_IDENTITY)
    return call.parts.identity


def _answered(call: Call, fields: Json) -> Response:
    kind = {"kind": call.kind.kind, "apiVersion": call.kind.api_version}
    return call.told({**kind, **_without(fields, *kind)}, 201)


def _without(fields: Json, *names: str) -> Json:
    return {key: value for key, value in fields.items() if key not in names}
