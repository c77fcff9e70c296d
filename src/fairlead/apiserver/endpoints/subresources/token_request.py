"""The subresource `token` of ServiceAccounts, which issues service account tokens.

upstream: pkg/registry/core/serviceaccount/storage/token.go,
pkg/apis/authentication/validation/validation.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.auth.authentication.service_account_token import BOUND_OBJECTS, claims_of
from fairlead.apiserver.endpoints.handlers.rest import existing_object, write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import object_member, posted_body
from fairlead.apiserver.error import Cause, bad_request, conflict, invalid, not_found
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

EXPIRATION_S_DEFAULT: Final = 60 * 60
EXPIRATION_S_MIN: Final = 10 * 60
EXPIRATION_S_MAX: Final = 1 << 32
NO_TOKENS: Final = "this server does not issue tokens"
_KIND: Final = Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")


def token(scope: RequestScope) -> WebhookCalls[Response]:
    """Issue a token for the service account that the path names.

    Raises ApiError 400, 404, 406, 409, 413, 415, 422. Also raises the error of an admission plugin
    or webhook that refuses the request.
    """
    body = posted_body(scope, _KIND)
    identity = scope.deps.identity
    if identity is None or identity.issue is None:
        raise bad_request(NO_TOKENS)
    scope.negotiate()
    account = existing_object(scope)
    _require_account(scope, object_member(body, "metadata").get("name") or "")
    body = yield from _admitted(scope, body)
    requested = {
        key: value for key, value in object_member(body, "spec").items() if value is not None
    }
    spec = {"expirationSeconds": EXPIRATION_S_DEFAULT, "boundObjectRef": None, **requested}
    spec["audiences"] = spec.get("audiences") or [identity.issuer]
    _require_duration(spec["expirationSeconds"])
    now_s = scope.now // NANOSECONDS_PER_SECOND
    bound = {**spec, "boundObjectRef": _bound(scope, spec["boundObjectRef"] or {})}
    text = identity.issue(claims_of(account, bound, now_s, identity.issuer))
    expires = format_timestamp((now_s + spec["expirationSeconds"]) * NANOSECONDS_PER_SECOND)
    names = ("name", "namespace", "uid")
    meta = {name: account["metadata"][name] for name in names}
    meta["creationTimestamp"] = format_timestamp(scope.now)
    answer = {
        "kind": _KIND.kind,
        "apiVersion": _KIND.api_version,
        "metadata": meta,
        "spec": {name: spec[name] for name in ("audiences", "expirationSeconds", "boundObjectRef")},
        "status": {"token": text, "expirationTimestamp": expires},
    }
    return scope.respond_json(answer, 201)


def _admitted(scope: RequestScope, body: Json) -> WebhookCalls[Json]:
    """Return the TokenRequest after admission. Raises ApiError."""
    target, part = scope.info, scope.info.subresource
    meta = {**object_member(body, "metadata"), "name": target.name, "namespace": target.namespace}
    options = write_options(scope.request, "CreateOptions")
    write = write_of(scope, options, subresource=part)
    obj = {**body, "metadata": meta}
    store = scope.deps.store
    return (
        yield from store.admission.admit.steps(
            Operation.CREATE, scope.kind, obj, subresource=part, write=write
        )
    )


def _require_account(scope: RequestScope, name: str) -> None:
    """Reject a body that names a different service account. Raises ApiError 422."""
    if name not in ("", scope.info.name):
        message = f'Invalid value: "{name}": must match the service account name if specified'
        cause = Cause("FieldValueInvalid", message, "metadata.name")
        raise invalid(_KIND, "", scope.info.name, (cause,))


def _require_duration(expiration_s: int) -> None:
    if expiration_s < EXPIRATION_S_MIN:
        why = "may not specify a duration less than 10 minutes"
    elif expiration_s > EXPIRATION_S_MAX:
        why = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    message = f"Invalid value: {expiration_s}: {why}"
    cause = Cause("FieldValueInvalid", message, "spec.expirationSeconds")
    raise invalid(_KIND, "", "", (cause,))


def _bound_kind(account: str, reference: Json) -> Kind:
    group, _, version = (reference.get("apiVersion") or "").rpartition("/")
    called = reference.get("kind", "")
    kind = next(
        (one for one in BOUND_OBJECTS.values() if (one.group, one.kind) == (group, called)), None
    )
    if kind is None:
        what = f"type {group}/{version}, Kind={called}"
        raise bad_request(f'cannot bind token for serviceaccount "{account}" to {what}')
    return kind


def _bound(scope: RequestScope, reference: Json) -> Json:
    """Return `reference`, a boundObjectRef, with the uid of its object. Raises ApiError."""
    if not reference:
        return reference
    kind = _bound_kind(scope.info.name, reference)
    namespace, name = scope.info.namespace if kind.namespaced else "", reference.get("name", "")
    target = scope.deps.store.find(kind, namespace, name)
    if target is None:
        raise not_found(kind, namespace, name)
    if kind is POD and target["spec"].get("serviceAccountName") != scope.info.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{scope.info.name}" to pod running with '
            "different serviceaccount name."
        )
    uid = target["metadata"]["uid"]
    if reference.get("uid") not in (None, "", uid):
        wrong = f"the UID in the bound object reference ({reference['uid']}) does not match the UID"
        why = f"{wrong} in record. The object might have been deleted and then recreated"
        raise conflict(kind, namespace, name, why, resource=kind.qualified)
    return {**reference, "uid": uid}
