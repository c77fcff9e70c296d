"""Locations of fields in a JSON value, and notes about unknown and duplicate fields.

A key, and so a path, may be as long as the whole request. Therefore, paths are built only when a
note or an error needs them, and only the first notes are kept.
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
        """Create the location of a value; the root has no `parent`.

        `parent` is the location of the object or list that contains the value, and `step` is the
        value's key or index there. If `step` is a field of an object type, `owner` is this type.
        """
        self.parent = parent
        self.step = step
        self.owner = owner

    @property
    def path(self) -> str:
        """The path of the value, such as `spec.containers[0].name`."""
        text = "".join(
            f"[{location.step}]" if isinstance(location.step, int) else f".{location.step}"
            for location in self._path_from_root()
        )
        return text.removeprefix(".")

    @property
    def names(self) -> str:
        """The path without indexes and map keys, as type errors quote it.

        An example is `spec.containers.name`. A field of an embedded struct is preceded by the
        struct's name.
        """
        names: list[str] = []
        for location in self._path_from_root():
            if location.owner is not None:
                field = str(location.step)
                embedded = embedded_in(location.owner, field)
                names += [embedded, field] if embedded else [field]
        return ".".join(names)

    def type_name(self, schema: Schema) -> str:
        """Return the Go type of a value at this location; `schema` is the schema of the value."""
        depth = 0
        location = self
        while location.parent is not None:
            if location.owner is not None:
                return declared_type(location.owner, str(location.step), depth, schema)
            location, depth = location.parent, depth + 1
        return go_type(schema)

    @property
    def struct(self) -> str:
        """The unversioned name of the type that declares the field ("PodSpec"); "" at the root."""
        owners = [
            location.owner for location in self._path_from_root() if location.owner is not None
        ]
        return owners[-1].definition.rpartition(".")[2] if owners else ""

    def _path_from_root(self) -> list[FieldLocation]:
        """Return the locations on the path, from the child of the root to this location."""
        way: list[FieldLocation] = []
        location = self
        while location.parent is not None:
            way.append(location)
            location = location.parent
        return way[::-1]


class Notes:
    """Notes about unknown and duplicate fields, without repetitions and limited in number."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._characters = 0

    @property
    def texts(self) -> list[str]:
        """The notes in the order in which they were made."""
        return list(self._texts)

    def unknown(self, location: FieldLocation) -> None:
        """Record an unknown field."""
        self._note("unknown", location)

    def repeated(self, location: FieldLocation) -> None:
        """Record a duplicate field."""
        self._note("duplicate", location)

    def _note(self, what: str, location: FieldLocation) -> None:
        if len(self._texts) < NOTES_MAX and self._characters < CHARACTERS_MAX:
            text = f"{what} field {quoted(location.path)}"
            self._texts[text] = None
            self._characters += len(text)
