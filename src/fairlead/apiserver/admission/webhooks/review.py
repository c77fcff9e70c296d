"""AdmissionReview: the request to a webhook, and the validation of its response.

upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.cel.admission_request import (
    admission_request,
    converted_object,
    converted_old_object,
)
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.gojson.json_text import JsonError, parse_json

KIND: Final = "AdmissionReview"
_GROUP: Final = "admission.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1")
_CURRENT: Final = "v1"
_UNVERSIONED: Final = (
    "could not create admission objects: webhook does not accept known AdmissionReview versions "
    "(v1, v1beta1)"
)


class _Status(msgspec.Struct):
    code: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] | None = None
    message: str | None = None
    reason: str | None = None
    details: dict[str, Any] | None = None


class _Response(msgspec.Struct):
    uid: str | None = None
    allowed: bool | None = None
    status: _Status | None = None
    patch: str | None = None
    patchType: str | None = None  # noqa: N815 - the API's names
    auditAnnotations: dict[str, str | None] | None = None  # noqa: N815
    warnings: list[str | None] | None = None


class _Answer(msgspec.Struct):
    """The expected types of the fields of a webhook's answer; null counts as absent."""

    apiVersion: str | None = None  # noqa: N815
    kind: str | None = None
    response: _Response | None = None


def admission_review(
    attributes: AdmissionAttributes, matched: Kind, key: str, versions: Sequence[str]
) -> tuple[Json, str]:
    """Return (AdmissionReview to send, its uid).

    `versions` are the review versions that the webhook accepts. The uid is derived from `key` and
    the namespace, name and resourceVersion of the object; the name may be a generated one. Raises
    ValueError if the webhook accepts no version that Fairlead can send.
    """
    version = next((one for one in versions or (_CURRENT,) if one in _VERSIONS), "")
    if not version:
        raise ValueError(_UNVERSIONED)
    meta = attributes.obj.get("metadata") or {}
    name = attributes.name or attributes.write.generated_name
    stable = [key, attributes.namespace, name, meta.get("resourceVersion", "")]
    digest = hashlib.sha256(json.dumps(stable).encode()).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    request = {
        "uid": uid,
        **admission_request(attributes, matched),
        "object": converted_object(attributes, matched),
        "oldObject": converted_old_object(attributes, matched),
    }
    return {"kind": KIND, "apiVersion": f"{_GROUP}/{version}", "request": request}, uid


def verified_response(body: bytes, review: Json, uid: str, *, is_mutating: bool) -> Json:
    """Return the field `response` of `body`, the webhook's answer to `review`.

    `uid` is the uid of the review. The response may contain a patch only if `is_mutating` is set.
    Raises ValueError if the answer is invalid.
    """
    answer = _decoded(body)
    response = answer.get("response")
    if not isinstance(response, dict):
        raise _invalid("webhook response was absent")
    is_current = review["apiVersion"] == f"{_GROUP}/{_CURRENT}"
    if is_current and response.get("uid", "") != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    found = (answer.get("apiVersion") or "", answer.get("kind") or "")
    if found != (review["apiVersion"], KIND):
        found_type = f"{found[0] if '/' in found[0] else f'/{found[0]}'}, Kind={found[1]}"
        raise _invalid(
            f"expected webhook response of {review['apiVersion']}, Kind={KIND}, got {found_type}"
        )
    if is_current:
        _require_patch(response, is_mutating=is_mutating)
    return response


def _require_patch(response: Json, *, is_mutating: bool) -> None:
    patch, kind = response.get("patch"), response.get("patchType")
    if not is_mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if kind is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and kind is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif kind is not None and not patch:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif kind == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        answer: Any = parse_json(body)
        msgspec.convert(answer, _Answer)
    except (JsonError, msgspec.ValidationError) as cause:
        raise ValueError(
            f"failed to call webhook: couldn't get version/kind; json parse error: {cause}"
        ) from None
    return dict(answer)


def _invalid(reason: str) -> ValueError:
    return ValueError(f"received invalid webhook response: {reason}")
