"""Encoders of watch events: whole objects, metadata only, or Tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct

from fairlead.apiserver.conversion.kind_conversion import shown
from fairlead.apiserver.endpoints.collection.watch import line_of
from fairlead.apiserver.endpoints.request.typed_object import zero_object
from fairlead.apiserver.endpoints.response.encoded_objects import preamble, rest_of
from fairlead.apiserver.endpoints.response.renderer import Renderer, partial
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import MediaTypeOptions
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.storage.storage import StoredObject, value_of


@dataclass(frozen=True, slots=True)
class ObjectEventEncoder:
    """Encodes watch events with whole objects of `kind`."""

    kind: Kind
    renderer: Renderer = field(compare=False)

    def event(self, name: str, obj: StoredObject, *, is_first: bool) -> bytes:
        """Return one event as a line of bytes."""
        if name == "BOOKMARK":
            marked = {**zero_object(self.kind), **value_of(obj)}
            return line_of(name, preamble(self.kind) + rest_of(marked))
        if name == "DELETED":
            return line_of(name, preamble(self.kind) + rest_of(shown(self.kind, value_of(obj))))
        return line_of(name, self.renderer.texts.whole(self.kind, obj))

    @property
    def is_shared(self) -> bool:
        """True: watches with an equal encoder can send the same line for an event."""
        return True


class MetadataEventEncoder(Struct, frozen=True):
    """Encodes watch events with PartialObjectMetadata."""

    media_type: MediaTypeOptions

    def event(self, name: str, obj: StoredObject, *, is_first: bool) -> bytes:
        """Return one event as a line of bytes; `name` is its type, and `is_first` is ignored."""
        return line_of(name, encode(partial(self.media_type, value_of(obj))))

    @property
    def is_shared(self) -> bool:
        """True: watches with an equal encoder can send the same line for an event."""
        return True


@dataclass(frozen=True, slots=True)
class TableEventEncoder:
    """Encodes watch events. The object of each event is a Table of one row.

    Only the first Table has column definitions.
    """

    kind: Kind
    media_type: MediaTypeOptions
    include: str
    renderer: Renderer = field(compare=False)
    clock: Callable[[], int] = field(compare=False)

    def event(self, name: str, obj: StoredObject, *, is_first: bool) -> bytes:
        """Return one event as a line of bytes."""
        now = self.clock()
        table = self.renderer.table(self.media_type, self.kind, value_of(obj), now, self.include)
        if not is_first:
            table["columnDefinitions"] = None
        if self.include == "None":  # a watch has `"object":null`, a list lacks the member
            table["rows"] = [{**row, "object": None} for row in table["rows"]]
        return line_of(name, encode(table))

    @property
    def is_shared(self) -> bool:
        """True: watches with an equal encoder can send the same line for an event."""
        return True
