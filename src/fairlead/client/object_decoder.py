"""ObjectDecoder: decodes pages of lists and lines of watches directly into typed views.

An object that does not match its view is decoded again after its nulls have been removed. If it
still does not match, it is counted and ignored.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.api.codec import VIEWS, DecodeError, decode_stored
from fairlead.api.objects import ApiObject
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


class WatchFailure(Struct):
    """The Status in an ERROR event."""

    code: int = 0
    reason: str = ""
    message: str = ""


_decode_raw_page: Final = msgspec.json.Decoder(_RawPage).decode
_decode_raw_event: Final = msgspec.json.Decoder(_RawEvent).decode
_decode_failure: Final = msgspec.json.Decoder(WatchFailure).decode
_decode_json: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ObjectDecoder:
    """Decodes objects of `resource`, which must have a view in `api.codec.VIEWS`."""

    def __init__(self, resource: ApiResource) -> None:
        """Raises KeyError for a resource without a view."""
        view = VIEWS[resource.api_version, resource.kind]
        self._type = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._decode_page = msgspec.json.Decoder(_Page[view]).decode  # type: ignore[valid-type]
        self._decode_event = msgspec.json.Decoder(_Event[view]).decode  # type: ignore[valid-type]
        self.refused = 0  # objects that could not be decoded

    def page(self, body: bytes) -> tuple[list[ApiObject], ListMeta]:
        """Return (objects, metadata) of a page of a list.

        Raises msgspec.DecodeError for anything but a list.
        """
        try:
            page = self._decode_page(body)
        except msgspec.ValidationError:
            raw = _decode_raw_page(body)
            found = (self._view(item) for item in raw.items or ())
            return [view for view in found if view is not None], raw.metadata
        return page.items or [], page.metadata

    def event(self, line: bytes) -> tuple[str, ApiObject | WatchFailure | None]:
        """Return (type, object) of one line of a watch; the object is None if it is not decodable.

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
        return event.type, event.object

    def _view(self, item: Raw) -> ApiObject | None:
        try:
            return decode_stored({**_decode_json(item), **self._type})
        except (DecodeError, msgspec.DecodeError):
            self.refused += 1
            return None
