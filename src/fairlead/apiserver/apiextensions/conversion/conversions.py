"""Conversions: the conversions that one request needs.

Some computations need an object in several versions, for example because managedFields have
entries in several versions. These computations are ordinary functions, which cannot wait for a
webhook. Therefore `run` restarts such a function whenever it needs a new conversion:

    compute() --> in_version: not known --> webhook --> compute() again --> in_version: known

upstream: apimachinery/pkg/util/managedfields/internal/versionconverter.go,
apiserver/pkg/admission/plugin/webhook/generic/conversion.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.conversion.converter import (
    ConversionFailedError,
    converted,
    from_storage,
    to_storage,
)
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import Storage, StoredObject
from fairlead.apiserver.suspension import WebhookCalls

Result = TypeVar("Result")
_encode: Final = msgspec.json.Encoder().encode
# The versions of a definition are few, and a computation needs few objects in each.
CONVERSIONS_MAX: Final = 1_000
_Key = tuple[str, bytes]


class _NeededError(Exception):
    """Raised if `compute` needs a conversion that `Conversions.run` has not made yet."""

    def __init__(self, key: _Key, obj: Json) -> None:
        super().__init__(key[0])
        self.key, self.obj = key, obj


class Conversions:
    """Converts the objects of one request for `kind`; `storage` contains webhooks' Services."""

    def __init__(self, kind: Kind, storage: Storage) -> None:
        self._kind = kind
        self._storage = storage
        # by (apiVersion, object as JSON text): the converted object, or the error
        self._known: dict[_Key, Json | ConversionFailedError] = {}

    def from_storage(self, stored: StoredObject) -> WebhookCalls[Json]:
        """Return the object `stored`, converted to the version of the request."""
        return (yield from from_storage(self._kind, [stored], self._storage))[0]

    def to_storage(self, obj: Json) -> WebhookCalls[Json]:
        """Return `obj`, which has the version of the request, in the version for storage."""
        return (yield from to_storage(self._kind, obj, self._storage))

    def in_version(self, api_version: str, obj: Json) -> Json:
        """Return `obj` in `api_version`. Raises ConversionFailedError if the webhook failed.

        If a webhook must convert `obj`, call this method only in the function `compute` that is
        passed to `run`, or after `run` has converted `obj` to this version.
        """
        if obj.get("apiVersion") == api_version:
            return obj
        # upstream: webhook_converter.go:isEmptyUnstructuredObject
        if self._kind.conversion_webhook is None or obj.keys() <= {"apiVersion", "kind"}:
            return {**obj, "apiVersion": api_version}
        key = api_version, _encode(obj)
        found = self._known.get(key)
        if found is None:
            raise _NeededError(key, obj)
        if isinstance(found, ConversionFailedError):
            raise found
        return found

    def run(self, compute: Callable[[], Result]) -> WebhookCalls[Result]:
        """Return the result of `compute`, which may call `in_version`.

        `compute` may run several times, so it must have no side effects. Raises
        ConversionFailedError if `compute` needs too many conversions, or if `compute` does not
        catch the error of a failed conversion.
        """
        for _ in range(CONVERSIONS_MAX):
            try:
                return compute()
            except _NeededError as needed:
                yield from self._convert(needed)
        raise ConversionFailedError(f"more than {CONVERSIONS_MAX} conversions are needed")

    def _convert(self, needed: _NeededError) -> WebhookCalls[None]:
        (api_version, _), obj = needed.key, needed.obj
        try:
            made = yield from converted(self._kind, [obj], api_version, self._storage)
            self._known[needed.key] = made[0]
        except ConversionFailedError as failure:
            self._known[needed.key] = failure
