"""ConversionReview: the request to a conversion webhook, and the validation of its response.

upstream: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.gotext.value import type_name
from fairlead.apiserver.schema.gojson.json_text import JsonError, parse_json
from fairlead.apiserver.validation.meta.object_meta import check_annotation_keys, check_labels

KIND: Final = "ConversionReview"
GROUP: Final = "apiextensions.k8s.io"
_CURRENT: Final = "v1"
_VERSIONS: Final = (_CURRENT, "v1beta1")
_SUCCESS: Final = "Success"
# The metadata that a webhook may change.
_CHANGEABLE: Final = ("labels", "annotations")


def conversion_review(
    objects: Sequence[Json], api_version: str, review_versions: Sequence[str]
) -> Json:
    """Return the ConversionReview that requests the conversion of `objects` to `api_version`.

    The version of the review is the first of `review_versions` that Fairlead knows. The uid of the
    review is derived from `api_version` and the objects. Raises ValueError if Fairlead knows none
    of `review_versions`.
    """
    version = next((one for one in review_versions if one in _VERSIONS), "")
    if not version:
        raise ValueError("no supported conversion review versions")
    digest = hashlib.sha256(msgspec.json.encode([api_version, *objects])).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)}
    return {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request}


def converted_objects(body: bytes, review: Json) -> list[Any]:
    """Return the converted objects in `body`, the webhook's answer to `review`.

    Raises ValueError if the answer is malformed or reports a failure. The objects themselves are
    not checked.
    """
    # upstream: webhook_converter.go:getConvertedObjectsFromResponse
    try:
        answer = parse_json(body)
    except JsonError as cause:
        raise ValueError(f"couldn't get version/kind; json parse error: {cause}") from None
    if not isinstance(answer, dict):
        raise ValueError("couldn't get version/kind; json parse error: no object")  # noqa: TRY004
    response = answer.get("response")
    is_current = review["apiVersion"] == f"{GROUP}/{_CURRENT}"
    stated = answer.get("apiVersion") or "", answer.get("kind") or ""
    if is_current and stated != (review["apiVersion"], KIND):
        expected = f"{review['apiVersion']}, Kind={KIND}"
        raise ValueError(f"expected webhook response of {expected}, got {type_text(answer)}")
    if not isinstance(response, dict):
        raise ValueError("no response provided")  # noqa: TRY004 - the reason of a failed call
    uid, sent = response.get("uid") or "", review["request"]["uid"]
    if is_current and uid != sent:
        raise ValueError(f'expected response.uid="{sent}", got "{uid}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    status = result.get("status") or ""
    if status != _SUCCESS:
        message = result.get("message") or f"response.result.status was '{status}', not 'Success'"
        raise ValueError(str(message))
    found = response.get("convertedObjects")
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError("response.convertedObjects is not a list")  # noqa: TRY004 - as above
    return found


def checked(original: Json, converted: Any, api_version: str) -> Json:
    """Return `converted`, a webhook's conversion of `original` to `api_version`.

    The result has the labels and annotations of `converted`, and all other metadata of `original`.
    Raises ValueError if the version, kind, name, namespace or uid of `converted` is not the
    expected one. Also raises ValueError if the labels or annotations of `converted` are invalid.
    """
    # upstream: webhook_converter.go:Convert, validateConvertedObject
    if not isinstance(converted, dict):
        raise ValueError("invalid object: it is no JSON object")  # noqa: TRY004 - as above
    version, kind = converted.get("apiVersion") or "", converted.get("kind") or ""
    if version != api_version:
        why = f"invalid groupVersion (expected {api_version}, received {version})"
        raise ValueError(f"invalid object: {why}")
    expected_kind = original.get("kind") or ""
    if kind != expected_kind:
        why = f"invalid kind (expected {expected_kind}, received {kind})"
        raise ValueError(f"invalid object: {why}")
    before, after = original.get("metadata"), converted.get("metadata")
    if before is None and after is None:
        return dict(converted)  # a part of an object, see managedfields.updater
    before = before or {}
    if after is None:
        raise ValueError("invalid metadata: missing metadata in converted object")
    if not isinstance(after, dict):
        raise ValueError(f"invalid metadata: {_wrong_type('metadata', after)}")  # noqa: TRY004
    for key, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        expected, received = before.get(key) or "", after.get(key) or ""
        if expected != received:
            raise ValueError(f"invalid object: must have the same {name}: {expected} != {received}")
    return {**converted, "metadata": _restored(before, after)}


def _restored(before: Json, after: Json) -> Json:
    """Return the metadata `before` with the labels and annotations of `after`."""
    # upstream: webhook_converter.go:restoreObjectMeta
    meta = {key: value for key, value in before.items() if key not in _CHANGEABLE}
    for key in _CHANGEABLE:
        texts = after.get(key)
        if texts is None:
            continue
        _require_texts(key, texts)
        if texts != before.get(key):
            check = check_labels if key == "labels" else check_annotation_keys
            problems = [
                f"{cause.field}: {cause.message}" for cause in check(f"metadata.{key}", texts)
            ]
            if problems:
                raise ValueError(f"invalid metadata: {', '.join(problems)}")
        meta[key] = texts
    return meta


def _require_texts(key: str, texts: Any) -> None:
    if not isinstance(texts, dict):
        raise ValueError(f"invalid metadata: {_wrong_type(f'metadata.{key}', texts)}")  # noqa: TRY004
    for name, text in texts.items():
        if not isinstance(text, str):
            why = f"metadata.{key}[{name}] must be a string, but is {type_name(text)}"
            raise ValueError(f"invalid metadata: {why} in converted object")  # noqa: TRY004


def _wrong_type(field: str, value: Any) -> str:
    return f"invalid {field} of type {type_name(value)} in converted object"


def type_text(obj: Mapping[str, Any]) -> str:
    """Return the type of an object as Go prints it, such as `example.com/v1, Kind=Widget`."""
    api_version = str(obj.get("apiVersion") or "")
    version = api_version if "/" in api_version else f"/{api_version}"
    return f"{version}, Kind={obj.get('kind') or ''}"
