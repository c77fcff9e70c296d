"""Ids generated from a seed."""

from __future__ import annotations

import uuid
from itertools import repeat

from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET
from fairlead.worlds.seeded_ids import SeededIds


def uids(seed, count=50):
    ids = SeededIds(seed)
    return [ids.new_uid(POD, "n", name) for name in repeat("a", count)]


def test_equal_seeds_give_equal_ids_and_different_seeds_different_ids():
    assert uids(1) == uids(1)
    assert set(uids(1)).isdisjoint(uids(2))


def test_ids_do_not_depend_on_their_objects():
    first, second = SeededIds(1), SeededIds(1)
    assert first.new_uid(POD, "n", "a") == second.new_uid(NODE, "", "b")


def test_uids_have_the_format_of_random_uuids():
    for text in uids(-3):
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


def test_ids_do_not_repeat():
    assert len(set(uids(0, 5000))) == 5000


def test_suffixes_are_unique_and_use_the_alphabet():
    ids = SeededIds(7)
    suffixes = [ids.new_suffix() for _ in range(200)]
    assert all(len(suffix) == 5 and set(suffix) <= set(SUFFIX_ALPHABET) for suffix in suffixes)
    assert len(set(suffixes)) == 200
    assert set("".join(suffixes)) == set(SUFFIX_ALPHABET)


def test_uids_of_loaded_objects_are_skipped():
    """A snapshot of a simulation contains the ids that the same seed generates."""
    first = [SeededIds(3).new_uid(POD, "a", "b")]
    ids = SeededIds(3)
    ids.skip(first)
    assert ids.new_uid(POD, "a", "b") not in first
