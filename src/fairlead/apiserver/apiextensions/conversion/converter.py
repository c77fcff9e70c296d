"""Converts custom resources to another version, by the strategy in spec.conversion.

The strategy `None` changes only the apiVersion. With the strategy `Webhook`, the webhook converts
the objects. Each call of the webhook contains as many objects as fit into a ConversionReview of
BATCH_BYTES. Objects that already have the wanted version are not converted.

upstream: apiextensions-apiserver/pkg/apiserver/conversion/{converter,webhook_converter}.go,
pkg/apiserver/customresource_handler.go:crdConversionRESTOptionsGetter
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.conversion.review import (
    checked,
    conversion_review,
    converted_objects,
    type_text,
)
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import DefinedType, Kind
from fairlead.apiserver.storage.storage import Storage, StoredObject, value_of
from fairlead.apiserver.suspension import WebhookCalls
from fairlead.apiserver.webhook_client_config import WebhookClientConfig

# Upstream sets no timeout for the call. There, the whole request times out after a minute.
TIMEOUT_S: Final = 30
# The server reads at most 3 MiB of an answer.
BATCH_BYTES: Final = 1 << 20


class ConversionFailedError(ApiError):
    """ApiError 500: objects could not be converted to another version."""

    def __init__(self, problem: str) -> None:
        """`problem` is the message."""
        super().__init__("", 500, problem)


class _Versioned(msgspec.Struct, rename="camel"):
    api_version: str = ""


_encode: Final = msgspec.json.Encoder().encode
_version_of: Final = msgspec.json.Decoder(type=_Versioned).decode


def calls_webhook(kind: Kind, stored: StoredObject) -> bool:
    """Return whether a webhook must convert the object `stored` to the version of `kind`.

    The version of a stored object can differ from the storage version of its definition. The
    storage version may have changed since the object was written.
    """
    if kind.conversion_webhook is None:
        return False
    if isinstance(stored, bytes):
        return _version_of(stored).api_version != kind.api_version
    return stored.get("apiVersion") != kind.api_version


def converted(
    kind: Kind, objects: Sequence[Json], api_version: str, storage: Storage
) -> WebhookCalls[list[Json]]:
    """Return `objects`, custom resources of `kind`, in the version `api_version`.

    `storage` contains the Services of webhooks. Raises ConversionFailedError.
    """
    made = list(objects)
    places = [at for at, obj in enumerate(made) if obj.get("apiVersion", "") != api_version]
    if kind.conversion_webhook is None:
        for at in places:
            made[at] = {**made[at], "apiVersion": api_version}
        return made
    for batch in _batches(made, places):
        sent = [made[at] for at in batch]
        received = yield from _called(kind.conversion_webhook, sent, api_version, storage)
        for at, obj in zip(batch, received, strict=True):
            made[at] = obj
    return made


def from_storage(
    kind: Kind, stored: Sequence[StoredObject], storage: Storage
) -> WebhookCalls[list[Json]]:
    """Convert the objects `stored` to the version of `kind`, and return them.

    If an object already has this version, it is returned unchanged. Any other object is converted,
    and its undeclared fields are dropped. Raises ConversionFailedError.
    """
    before = list(map(value_of, stored))
    if kind.custom is None:
        return before
    after = yield from converted(kind, before, kind.api_version, storage)
    return _pruned(kind.custom, before, after)


def to_storage(kind: Kind, obj: Json, storage: Storage) -> WebhookCalls[Json]:
    """Return `obj`, which has the version of `kind`, in the version for storage.

    Fields that the storage version lacks are dropped. Raises ConversionFailedError.
    """
    if kind.custom is None or obj.get("apiVersion") == kind.stored_as:
        return obj
    made = yield from converted(kind, [obj], kind.stored_as, storage)
    return _pruned(dict(kind.all_types).get(kind.stored_as), [obj], made)[0]


def _pruned(
    custom: DefinedType | None, before: Sequence[Json], after: Sequence[Json]
) -> list[Json]:
    """Return the converted objects `after` without the fields that their schema does not declare.

    `before` are the same objects before the conversion. An object that needed no conversion is the
    same Python object in both lists, and is not pruned.
    """
    # upstream: customresource_handler.go:schemaCoercingConverter
    pairs = zip(before, after, strict=True)
    return [new if new is old or custom is None else custom.pruned(new) for old, new in pairs]


def _batches(objects: Sequence[Json], places: Sequence[int]) -> Iterator[list[int]]:
    """Divide `places` into batches, one for each webhook call, and yield the batches.

    `places` are indexes in `objects`.
    """
    batch: list[int] = []
    size = 0
    for at in places:
        length = len(_encode(objects[at]))
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(at)
        size += length
    if batch:
        yield batch


def _called(
    webhook: Json, objects: Sequence[Json], api_version: str, storage: Storage
) -> WebhookCalls[list[Json]]:
    """Return the webhook's conversions of `objects`. Raises ConversionFailedError."""
    about = f"conversion webhook for {type_text(objects[0])}"
    client = WebhookClientConfig(webhook.get("clientConfig") or {}, TIMEOUT_S, sends_timeout=False)
    try:
        versions = webhook.get("conversionReviewVersions") or ()
        review = conversion_review(objects, api_version, versions)
        body = yield from client.post(_encode(review), storage)
        found = converted_objects(body, review)
    except ValueError as cause:
        raise ConversionFailedError(f"{about} failed: {cause}") from None
    if len(found) != len(objects):
        count = f"{len(found)} objects, expected {len(objects)}"
        raise ConversionFailedError(f"{about} returned {count}")
    try:
        return [checked(*pair, api_version) for pair in zip(objects, found, strict=True)]
    except ValueError as cause:
        raise ConversionFailedError(f"{about} returned {cause}") from None
