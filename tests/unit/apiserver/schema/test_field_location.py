"""Where something stands, and what is noted of it."""

from __future__ import annotations

from fairlead.apiserver.schema.field_location import CHARACTERS_MAX, NOTES_MAX, FieldLocation, Notes
from fairlead.apiserver.schema.model import Schema, Type

SPEC = Schema(Type.OBJECT, definition="io.k8s.api.core.v1.PodSpec")


def test_a_place_in_words():
    place = FieldLocation(FieldLocation(FieldLocation(FieldLocation(), "a", SPEC), 3), "b.c")
    assert (place.path, place.names, place.struct) == ("a[3].b.c", "a", "PodSpec")
    assert (FieldLocation().path, FieldLocation().names, FieldLocation().struct) == ("", "", "")
    assert FieldLocation(FieldLocation(), 0).path == "[0]"


def test_each_thing_is_noted_once():
    notes = Notes()
    notes.unknown(FieldLocation(FieldLocation(), "a"))
    notes.repeated(FieldLocation(FieldLocation(), "a"))
    notes.unknown(FieldLocation(FieldLocation(), "a"))
    assert notes.texts == ['unknown field "a"', 'duplicate field "a"']


def test_not_more_is_noted_than_somebody_reads():
    notes, long = Notes(), Notes()
    for at in range(1_000):
        notes.unknown(FieldLocation(FieldLocation(), at))
        long.unknown(FieldLocation(FieldLocation(FieldLocation(), "k" * CHARACTERS_MAX), at))
    assert len(notes.texts) == NOTES_MAX
    assert len(long.texts) == 1
