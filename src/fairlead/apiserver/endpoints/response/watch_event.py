"""Event forms: how the lines of a watch look, as objects, as their metadata, or as Tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.request.typed_object import zero_object
from fairlead.apiserver.endpoints.response.encoded_objects import encode, preamble, rest_of
from fairlead.apiserver.endpoints.response.renderer import Renderer, partial
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import PARTIAL, PARTIAL_LIST, TABLE, Form
from fairlead.apiserver.registry.conversion import shown
from fairlead.apiserver.storage.storage import Kept, value_of


def _line(name: str, text: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (name.encode(), text)


def error_line(status: Json) -> bytes:
    """The event that ends a watch with a Status."""
    return _line("ERROR", encode(status))


@dataclass(frozen=True, slots=True)
class ObjectEvents:
    """Events with whole objects of `kind`."""

    kind: Kind
    renderer: Renderer = field(compare=False)

    def event(self, name: str, obj: Kept, *, is_first: bool) -> bytes:
        """See EventForm."""
        if name == "BOOKMARK":
            marked = {**zero_object(self.kind), **value_of(obj)}
            return _line(name, preamble(self.kind) + rest_of(marked))
        if name == "DELETED":
            return _line(name, preamble(self.kind) + rest_of(shown(self.kind, value_of(obj))))
        return _line(name, self.renderer.texts.whole(self.kind, obj))

    def is_shared(self, *, is_first: bool) -> bool:
        """See EventForm."""
        return True


@dataclass(frozen=True, slots=True)
class PartialEvents:
    """Events with the metadata of objects."""

    form: Form

    def event(self, name: str, obj: Kept, *, is_first: bool) -> bytes:
        """See EventForm."""
        return _line(name, encode(partial(self.form, value_of(obj))))

    def is_shared(self, *, is_first: bool) -> bool:
        """See EventForm."""
        return True


@dataclass(frozen=True, slots=True)
class TableEvents:
    """Events with a Table of one row; only the first says which columns there are."""

    kind: Kind
    form: Form
    include: str
    renderer: Renderer = field(compare=False)
    clock: Callable[[], int] = field(compare=False)

    def event(self, name: str, obj: Kept, *, is_first: bool) -> bytes:
        """See EventForm."""
        now, shown_of = self.clock(), value_of(obj)
        table = self.renderer.table(self.form, self.kind, shown_of, now, self.include)
        if not is_first:
            table["columnDefinitions"] = None
        if self.include == "None":  # in a watch it is there, and nothing
            table["rows"] = [{**row, "object": None} for row in table["rows"]]
        return _line(name, encode(table))

    def is_shared(self, *, is_first: bool) -> bool:
        """See EventForm."""
        return True


def is_partial(form: Form) -> bool:
    """Whether a watch shows metadata alone."""
    return form.view in (PARTIAL, PARTIAL_LIST)


def is_table(form: Form) -> bool:
    """Whether a watch shows Tables."""
    return form.view == TABLE
