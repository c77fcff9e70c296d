"""Paths of fields, and the warnings about them."""

from __future__ import annotations

from fairlead.apiserver.schema.field_location import CHARACTERS_MAX, NOTES_MAX, FieldLocation, Notes
from fairlead.apiserver.schema.model import Schema, Type

SPEC = Schema(Type.OBJECT, definition="io.k8s.api.core.v1.PodSpec")


def test_a_location_has_path_names_and_struct():
    place = FieldLocation(FieldLocation(FieldLocation(FieldLocation(), "a", SPEC), 3), "b.c")
    assert (place.path, place.names, place.struct) == ("a[3].b.c", "a", "PodSpec")
    assert (FieldLocation().path, FieldLocation().names, FieldLocation().struct) == ("", "", "")
    assert FieldLocation(FieldLocation(), 0).path == "[0]"


def test_each_warning_is_recorded_once():
    notes = Notes()
    notes.unknown(FieldLocation(FieldLocation(), "a"))
    notes.repeated(FieldLocation(FieldLocation(), "a"))
    notes.unknown(FieldLocation(FieldLocation(), "a"))
    assert notes.texts == ['unknown field "a"', 'duplicate field "a"']


def test_the_number_and_length_of_warnings_are_limited():
    notes, long = Notes(), Notes()
    for at in range(1_000):
        notes.unknown(FieldLocation(FieldLocation(), at))
        long.unknown(FieldLocation(FieldLocation(FieldLocation(), "k" * CHARACTERS_MAX), at))
    assert len(notes.texts) == NOTES_MAX
    assert len(long.texts) == 1
