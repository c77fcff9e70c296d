"""A kind without rules of its own needs a row in the table of kinds, and no strategy."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.served_kinds import BUILT_IN, ServedKinds
from fairlead.apiserver.registry.strategies.scheduling import BATCH_STRATEGIES
from fairlead.apiserver.registry.strategies.table import STRATEGIES, strategy_of
from fairlead.apiserver.registry.strategy import DEFAULT

GADGET = Kind("example.k8s.io", "v1", "Gadget", "gadgets", has_generation=True)
MANIFEST = {
    "apiVersion": "example.k8s.io/v1",
    "kind": "Gadget",
    "metadata": {"name": "a", "namespace": "d"},
    "spec": {"size": 1},
}


def test_a_kind_without_rules_is_served_like_any_other(new_store, now):
    assert strategy_of(GADGET) is DEFAULT
    served = ServedKinds((*BUILT_IN, GADGET))
    assert served.find("example.k8s.io", "v1", "gadgets") is GADGET
    store = new_store(registry=API_SERVER)
    old = store.create(MANIFEST, now, kind=GADGET)
    assert old["metadata"]["generation"] == 1
    new = store.update(GADGET, old, {**old, "spec": {"size": 2}})
    assert new["metadata"]["generation"] == 2
    assert store.update(GADGET, new, new) is new
    with pytest.raises(ApiError, match="the object has been modified"):
        store.update(GADGET, new, old)
    with pytest.raises(ApiError, match="already exists"):
        store.create(MANIFEST, now, kind=GADGET)
    store.delete(GADGET, "d", "a", now)
    assert store.list(GADGET) == []


def test_every_strategy_is_of_a_kind_in_the_table():
    assert STRATEGIES.keys() - BATCH_STRATEGIES.keys() <= {kind.resource for kind in BUILT_IN}
