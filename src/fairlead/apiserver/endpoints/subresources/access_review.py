"""SubjectAccessReview, TokenReview and similar kinds, whose result is returned but never stored.

upstream: pkg/registry/authorization/*/rest.go, pkg/registry/authentication/*/storage.go,
pkg/apis/authorization/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes, Identity
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import object_member, posted_body
from fairlead.apiserver.error import Cause, bad_request, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import Response, User
from fairlead.apiserver.validation.meta.field import invalid as refused

NO_IDENTITY: Final = "this server does not know its users"
UNKNOWN_BEARER: Final = "invalid bearer token"
_ONE_OF: Final = (
    "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
    "specified"
)
_NOT_BOTH: Final = "cannot be specified in combination with resourceAttributes"
_EMPTY: Final = "must be empty"
_IGNORED_METADATA: Final = ("namespace", "managedFields")
_COLLECTION_VERBS: Final = ("list", "watch", "deletecollection")
_NO_SUBJECT: Final = 'Invalid value: "": at least one of user or group must be specified'
_AUTHORIZATION: Final = Kind("authorization.k8s.io", "v1", "", "")


def self_subject_access_review(scope: RequestScope) -> Response:
    """Return the review with its result: whether the requester may perform the described action."""
    body = posted_body(scope, scope.kind)
    spec = object_member(body, "spec")
    _require((*_attribute_errors(spec), *_named(body, _EMPTY)))
    return _reviewed(scope, body, spec, scope.request.user)


def subject_access_review(scope: RequestScope) -> Response:
    """Return the review with the result: whether the user in its spec may perform the action."""
    body = posted_body(scope, scope.kind)
    spec = object_member(body, "spec")
    problems = list(_attribute_errors(spec))
    if not spec.get("user") and not spec.get("groups"):
        problems.append(Cause("FieldValueInvalid", _NO_SUBJECT, "spec.user"))
    place = scope.info.namespace
    problems += _named(body, f"{_EMPTY} except for namespace" if place else _EMPTY)
    if place:
        problems += _misplaced(spec, object_member(body, "metadata").get("namespace") or place)
    _require(problems)
    user = User(
        name=spec.get("user", ""), groups=tuple(spec.get("groups", ())), uid=spec.get("uid", "")
    )
    return _reviewed(scope, body, spec, user)


def _misplaced(spec: Json, namespace: str) -> Iterator[Cause]:
    """Yield the errors in `spec`, the spec of a LocalSubjectAccessReview in `namespace`.

    The review must not be for another namespace or for a path.
    """
    about = spec.get("resourceAttributes")
    if about is not None and about.get("namespace", "") != namespace:
        field = "spec.resourceAttributes.namespace"
        yield refused(field, about.get("namespace", ""), "must match metadata.namespace")
    paths = spec.get("nonResourceAttributes")
    if paths is not None:
        why = "disallowed on this kind of request"
        yield refused("spec.nonResourceAttributes", _shown_paths(paths), why)


def self_subject_rules_review(scope: RequestScope) -> Response:
    """Return the review with its result: the rules that apply to the requester in a namespace."""
    spec = object_member(posted_body(scope, scope.kind), "spec")
    namespace = spec.get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = _identity(scope).rights.rules_for(scope.request.user, namespace)
    status = {
        "resourceRules": [_shown(rule) for rule in rules if rule.get("resources")],
        "nonResourceRules": [_shown(rule) for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    return _respond(scope, {"metadata": {}, "spec": {}, "status": status})


def self_subject_review(scope: RequestScope) -> Response:
    """Return a SelfSubjectReview with the user info of the requester."""
    posted_body(scope, scope.kind)
    meta = {"creationTimestamp": format_timestamp(scope.now)}
    status = {"userInfo": user_info(scope.request.user)}
    return _respond(scope, {"metadata": meta, "status": status})


def token_review(scope: RequestScope) -> Response:
    """Return the review with its result: the user whom its token authenticates."""
    body = posted_body(scope, scope.kind)
    spec = object_member(body, "spec")
    identity, token = _identity(scope), spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    wanted = spec.get("audiences") or [identity.issuer]
    user = identity.recognize(token, wanted)
    if user is None:
        status: Json = {"user": {}, "error": UNKNOWN_BEARER}
    else:
        audiences = [name for name in wanted if identity.recognize(token, (name,))]
        status = {"authenticated": True, "user": user_info(user), "audiences": audiences}
    return _respond(scope, {"metadata": {}, "spec": spec, "status": status})


def user_info(user: User) -> Json:
    """Return `user` as a UserInfo object."""
    shown: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {key: value for key, value in shown.items() if value}


# --- rights --------------------------------------------------------------------------------


def _attribute_errors(spec: Json) -> Iterator[Cause]:
    paths = spec.get("nonResourceAttributes")
    if spec.get("resourceAttributes") is None and paths is None:
        yield Cause("FieldValueInvalid", _ONE_OF, "spec.resourceAttributes")
    elif spec.get("resourceAttributes") is not None and paths is not None:
        yield refused("spec.nonResourceAttributes", _shown_paths(paths), _NOT_BOTH)


def _shown_paths(paths: Json) -> Json:
    return {name.capitalize(): paths.get(name, "") for name in ("path", "verb")}


def _named(body: Json, why: str) -> Iterator[Cause]:
    """Yield an error if the review `body` has metadata other than namespace and managedFields."""
    meta = object_member(body, "metadata")
    left = {key: value for key, value in meta.items() if value and key not in _IGNORED_METADATA}
    if left:
        yield refused("metadata", left, why)


def _require(problems: Iterable[Cause]) -> None:
    causes = tuple(problems)
    if causes:
        raise invalid(_AUTHORIZATION, "", "", causes)


def _reviewed(scope: RequestScope, body: Json, spec: Json, user: User) -> Response:
    verdict = _identity(scope).rights.verdict(_attributes(spec, user))
    meta = {
        key: value for key, value in object_member(body, "metadata").items() if value is not None
    }
    return _respond(scope, {**body, "metadata": meta, "status": _verdict(verdict)})


def _attributes(spec: Json, user: User) -> AuthorizationAttributes:
    about = spec.get("resourceAttributes")
    if about is None:
        path = spec["nonResourceAttributes"]
        return AuthorizationAttributes(user, path.get("verb", ""), path.get("path", ""))
    return AuthorizationAttributes(
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
    """Return the text of the field selector in `about`, the resourceAttributes of a review.

    Return "" if the verb in `about` is not list, watch or deletecollection.
    """
    # upstream: pkg/registry/authorization/util/helpers.go:ResourceAttributesFrom
    field_selector = about.get("fieldSelector") or {}
    if about.get("verb") not in _COLLECTION_VERBS:
        return ""
    terms = [
        f"{one.get('key', '')}={one['values'][0]}"
        for one in field_selector.get("requirements") or ()
        if one.get("operator") == "In" and len(one.get("values") or ()) == 1
    ]
    return ",".join(terms) or str(field_selector.get("rawSelector") or "")


def _verdict(verdict: AccessDecision) -> Json:
    shown: Json = {"allowed": verdict.allowed}
    return {**shown, "reason": verdict.reason} if verdict.reason else shown


def _shown(rule: Json) -> Json:
    names = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return {name: rule[name] for name in names if rule.get(name)}


def _identity(scope: RequestScope) -> Identity:
    if scope.deps.identity is None:
        raise bad_request(NO_IDENTITY)
    return scope.deps.identity


def _respond(scope: RequestScope, fields: Json) -> Response:
    kind = {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version}
    others = {key: value for key, value in fields.items() if key not in kind}
    return scope.respond_json({**kind, **others}, 201)
