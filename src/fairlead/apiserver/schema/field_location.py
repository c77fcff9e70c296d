"""Locations of fields in a JSON value, and notes about unknown and duplicate fields.

Keys may be as long as a request, so paths are built only when a note or an error needs them, and
only the first notes are kept.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.schema.gojson.type_name import declared_type, embedded_in, go_type
from fairlead.apiserver.schema.model import Schema

# upstream: sigs.k8s.io/json internal/golang/encoding/json/kubernetes_patch.go:saveStrictError
NOTES_MAX: Final = 100
CHARACTERS_MAX: Final = 1 << 20


class FieldLocation:
    """The location of a value; its path is built on demand."""

    __slots__ = ("owner", "parent", "step")

    def __init__(
        self, parent: FieldLocation | None = None, step: str | int = "", owner: Schema | None = None
    ) -> None:
        """`step` leads from `parent` to this location; a field's `owner` is its type."""
        self.parent = parent
        self.step = step
        self.owner = owner

    @property
    def path(self) -> str:
        """`spec.containers[0].name`."""
        text = "".join(
            f"[{place.step}]" if isinstance(place.step, int) else f".{place.step}"
            for place in self._way()
        )
        return text.removeprefix(".")

    @property
    def names(self) -> str:
        """`spec.containers.name`: the path without indexes, as type errors quote it.

        A field of an embedded struct is preceded by the struct's name.
        """
        names: list[str] = []
        for place in self._way():
            if place.owner is not None:
                field = str(place.step)
                embedded = embedded_in(place.owner, field)
                names += [embedded, field] if embedded else [field]
        return ".".join(names)

    def type_name(self, schema: Schema) -> str:
        """The Go type of a value at this location; `schema` is the value's own."""
        depth = 0
        place = self
        while place.parent is not None:
            if place.owner is not None:
                return declared_type(place.owner, str(place.step), depth, schema)
            place, depth = place.parent, depth + 1
        return go_type(schema)

    @property
    def struct(self) -> str:
        """The type that has the field, without its version."""
        owners = [place.owner for place in self._way() if place.owner is not None]
        return owners[-1].definition.rpartition(".")[2] if owners else ""

    def _way(self) -> list[FieldLocation]:
        """The locations from the root's child down to this one."""
        way: list[FieldLocation] = []
        place = self
        while place.parent is not None:
            way.append(place)
            place = place.parent
        return way[::-1]


class Notes:
    """Notes about fields: each once, up to a bound."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._characters = 0

    @property
    def texts(self) -> list[str]:
        """The notes in the order in which they were made."""
        return list(self._texts)

    def unknown(self, place: FieldLocation) -> None:
        """Note an unknown field."""
        self._note("unknown", place)

    def repeated(self, place: FieldLocation) -> None:
        """Note a duplicate field."""
        self._note("duplicate", place)

    def _note(self, what: str, place: FieldLocation) -> None:
        if len(self._texts) < NOTES_MAX and self._characters < CHARACTERS_MAX:
            text = f"{what} field {quoted(place.path)}"
            self._texts[text] = None
            self._characters += len(text)
