"""serviceaccounts/token: a token for whoever may ask for one.

upstream: pkg/registry/core/serviceaccount/storage/token.go,
pkg/apis/authentication/validation/validation.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.auth.authentication.service_account_token import BOUND, claims_of
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.handlers.rest import write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.posted_body import member, posted
from fairlead.apiserver.error import Cause, bad_request, conflict, invalid, not_found
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.request import Response

EXPIRATION_S_DEFAULT: Final = 60 * 60
EXPIRATION_S_MIN: Final = 10 * 60
EXPIRATION_S_MAX: Final = 1 << 32
NO_TOKENS: Final = "this server does not issue tokens"
_KIND: Final = Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
_NS_PER_S: Final = 1_000_000_000


def token(call: Call) -> Response:
    """Issue a token for the account in the path. Raises ApiError 400, 404, 409, 422."""
    body = posted(call, _KIND)
    identity = call.parts.identity
    if identity is None or identity.issue is None:
        raise bad_request(NO_TOKENS)
    account = found(call)
    _require_account(call, member(body, "metadata").get("name") or "")
    body = _admitted(call, body)
    asked = {key: value for key, value in member(body, "spec").items() if value is not None}
    spec = {"expirationSeconds": EXPIRATION_S_DEFAULT, "boundObjectRef": None, **asked}
    spec["audiences"] = spec.get("audiences") or [identity.issuer]
    _require_duration(spec["expirationSeconds"])
    now_s = call.now // _NS_PER_S
    bound = {**spec, "boundObjectRef": _bound(call, spec["boundObjectRef"] or {})}
    text = identity.issue(claims_of(account, bound, now_s, identity.issuer))
    expires = format_timestamp((now_s + spec["expirationSeconds"]) * _NS_PER_S)
    names = ("name", "namespace", "uid")
    meta = {name: account["metadata"][name] for name in names}
    meta["creationTimestamp"] = format_timestamp(call.now)
    answer = {
        "kind": _KIND.kind,
        "apiVersion": _KIND.api_version,
        "metadata": meta,
        "spec": {name: spec[name] for name in ("audiences", "expirationSeconds", "boundObjectRef")},
        "status": {"token": text, "expirationTimestamp": expires},
    }
    return call.told(answer, 201)


def _admitted(call: Call, body: Json) -> Json:
    """The request as those let it pass who have a say in it. Raises ApiError."""
    target, part = call.target, call.target.subresource
    meta = {**member(body, "metadata"), "name": target.name, "namespace": target.namespace}
    options = write_options(call.request, "CreateOptions")
    write = write_of(call, options, subresource=part)
    asked = {**body, "metadata": meta}
    store = call.parts.store
    return store.stations.admitted(
        Operation.CREATE, call.kind, asked, subresource=part, write=write
    )


def _require_account(call: Call, name: str) -> None:
    """Refuse a request for a token of another account."""
    if name not in ("", call.target.name):
        message = f'Invalid value: "{name}": must match the service account name if specified'
        cause = Cause("FieldValueInvalid", message, "metadata.name")
        raise invalid(_KIND, "", call.target.name, (cause,))


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
    kind = next((one for one in BOUND.values() if (one.group, one.kind) == (group, called)), None)
    if kind is None:
        what = f"type {group}/{version}, Kind={called}"
        raise bad_request(f'cannot bind token for serviceaccount "{account}" to {what}')
    return kind


def _bound(call: Call, reference: Json) -> Json:
    """What the token is bound to, with its uid: it must be there, in the version that is meant."""
    if not reference:
        return reference
    kind = _bound_kind(call.target.name, reference)
    namespace, name = call.target.namespace if kind.namespaced else "", reference.get("name", "")
    target = call.parts.store.find(kind, namespace, name)
    if target is None:
        raise not_found(kind, namespace, name)
    if kind is POD and target["spec"].get("serviceAccountName") != call.target.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{call.target.name}" to pod running with '
            "different serviceaccount name."
        )
    uid = target["metadata"]["uid"]
    if reference.get("uid") not in (None, "", uid):
        wrong = f"the UID in the bound object reference ({reference['uid']}) does not match the UID"
        why = f"{wrong} in record. The object might have been deleted and then recreated"
        raise conflict(kind, namespace, name, why, resource=kind.qualified)
    return {**reference, "uid": uid}
