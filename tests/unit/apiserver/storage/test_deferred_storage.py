"""DeferredStorage decodes objects when they are first read, and behaves like Storage."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Storage


@dataclass
class Deferred:
    name: str
    made: list = field(default_factory=list)
    kind = POD

    @property
    def key(self):
        return ("ns", self.name)

    @property
    def value(self):
        self.made.append(self.name)
        return {"metadata": {"namespace": "ns", "name": self.name, "resourceVersion": "4"}}


READS = [
    pytest.param(lambda s: s.find(POD, "ns", "b"), id="one object"),
    pytest.param(lambda s: s.find_stored(POD, "ns", "b"), id="one object in any form"),
    pytest.param(lambda s: list(s.items(POD)), id="all objects in order"),
    pytest.param(lambda s: list(s.items(POD, "ns")), id="all objects of a namespace"),
    pytest.param(lambda s: list(s.unsorted(POD)), id="all objects in any order"),
    pytest.param(lambda s: list(s.stored_items(POD)), id="all objects with their keys"),
    pytest.param(lambda s: s.remove(POD, "ns", "a"), id="a removed object"),
    pytest.param(
        lambda s: (s.put(POD, {"metadata": {"namespace": "ns", "name": "a"}}), s.changes_since(4)),
        id="a changed object and its change",
    ),
]


@pytest.mark.parametrize("read", READS)
def test_reads_return_the_same_as_an_ordinary_storage(read):
    results = []
    for storage in (DeferredStorage(), Storage()):
        storage.restore_deferred([Deferred("b"), Deferred("a")], 4)
        results.append(read(storage))
    assert results[0] == results[1]


def test_an_object_is_decoded_once_and_only_when_it_is_read():
    storage, made = DeferredStorage(), []
    storage.restore_deferred([Deferred("a", made), Deferred("b", made)], 4)
    assert (storage.count(POD), made) == (2, [])
    assert storage.find(POD, "ns", "a") is storage.find(POD, "ns", "a")
    assert made == ["a"]
