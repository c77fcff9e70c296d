"""ObjectDecoder: decodes pages of lists and lines of watches directly into typed views.

An object that does not match its view is decoded again after its nulls have been removed. The
result is an UndecodableObject if the object still does not match, or if a quantity does not parse.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.api.codec import VIEWS, DecodeError, decode_stored
from fairlead.api.objects import ApiObject
from fairlead.api.quantity_check import quantity_check
from fairlead.client.api_resource import ApiResource

View = TypeVar("View", bound=ApiObject)

BOOKMARK: Final = "BOOKMARK"
DELETED: Final = "DELETED"
ERROR: Final = "ERROR"


class ListMeta(Struct):
    """The metadata of a list."""

    resource_version: str = field(default="", name="resourceVersion")
    continue_: str = field(default="", name="continue")


class _Page(Struct, Generic[View]):
    items: list[View] | None = None
    metadata: ListMeta = field(default_factory=ListMeta)


class _RawPage(Struct):
    items: list[Raw] | None = None
    metadata: ListMeta = field(default_factory=ListMeta)


class _Event(Struct, Generic[View]):
    type: str
    object: View


class _RawEvent(Struct):
    type: str
    object: Raw


class UndecodableObject(Struct, frozen=True):
    """An object that does not match its view, or in which a quantity does not parse.

    `key` is NAMESPACE/NAME or NAME, or "" if the object has no name. `problem` names the field.
    """

    key: str
    problem: str


class DecodedPage(Struct, frozen=True):
    """A page of a list; `undecodable` are the objects of the page that cannot be decoded."""

    objects: list[ApiObject]
    metadata: ListMeta
    undecodable: list[UndecodableObject] = []


class _Name(Struct):
    name: str = ""
    namespace: str = ""


class _Named(Struct):
    metadata: _Name = field(default_factory=_Name)


class WatchFailure(Struct):
    """The Status in an ERROR event."""

    code: int = 0
    reason: str = ""
    message: str = ""


_decode_raw_page: Final = msgspec.json.Decoder(_RawPage).decode
_decode_raw_event: Final = msgspec.json.Decoder(_RawEvent).decode
_decode_failure: Final = msgspec.json.Decoder(WatchFailure).decode
_decode_json: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_named: Final = msgspec.json.Decoder(_Named).decode


class ObjectDecoder:
    """Decodes objects of `resource`, which must have a view in `api.codec.VIEWS`."""

    def __init__(self, resource: ApiResource) -> None:
        """Prepare the decoders. Raises KeyError if the resource has no view."""
        view = VIEWS[resource.api_version, resource.kind]
        self._type = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._decode_page = msgspec.json.Decoder(_Page[view]).decode  # type: ignore[valid-type]
        self._decode_event = msgspec.json.Decoder(_Event[view]).decode  # type: ignore[valid-type]
        self._quantity_check = quantity_check(view)

    def page(self, body: bytes) -> DecodedPage:
        """Return a page of a list. Raises msgspec.DecodeError for anything but a list."""
        try:
            page = self._decode_page(body)
        except msgspec.ValidationError:
            raw = _decode_raw_page(body)
            return _page([self._view(item) for item in raw.items or ()], raw.metadata)
        if self._quantity_check is None:
            return DecodedPage(page.items or [], page.metadata)
        return _page([self._checked(item) for item in page.items or ()], page.metadata)

    def event(self, line: bytes) -> tuple[str, ApiObject | UndecodableObject | WatchFailure]:
        """Return (type, object) of one line of a watch.

        The object of an ERROR event is a WatchFailure. Raises msgspec.DecodeError for a line that
        is not an event.
        """
        try:
            event = self._decode_event(line)
        except msgspec.ValidationError:
            raw = _decode_raw_event(line)
            if raw.type == ERROR:
                return ERROR, _decode_failure(raw.object)
            return raw.type, self._view(raw.object)
        if event.type == ERROR:
            return ERROR, _decode_failure(_decode_raw_event(line).object)
        return event.type, self._checked(event.object)

    def _checked(self, view: ApiObject) -> ApiObject | UndecodableObject:
        wrong = None if self._quantity_check is None else self._quantity_check(view)
        if wrong is None:
            return view
        return UndecodableObject(view.key, f"{wrong.field}: {wrong.problem}")

    def _view(self, item: Raw) -> ApiObject | UndecodableObject:
        try:
            return self._checked(decode_stored({**_decode_json(item), **self._type}))
        except DecodeError as cause:
            problem = f"{cause.field}: {cause.problem}" if cause.field else cause.problem
        except msgspec.DecodeError as cause:
            problem = str(cause)
        return UndecodableObject(_key(item), problem)


def _page(found: list[ApiObject | UndecodableObject], metadata: ListMeta) -> DecodedPage:
    undecodable = [one for one in found if isinstance(one, UndecodableObject)]
    return DecodedPage(
        [one for one in found if not isinstance(one, UndecodableObject)], metadata, undecodable
    )


def _key(item: Raw) -> str:
    try:
        named = _decode_named(item).metadata
    except msgspec.DecodeError:
        return ""
    return f"{named.namespace}/{named.name}" if named.namespace else named.name
