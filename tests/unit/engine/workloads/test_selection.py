"""The indexes of selectable objects and selecting owners return all matches, and few others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlead.api.codec import decode
from fairlead.api.objects import Pod
from fairlead.engine.workloads.selection import ChildIndex, OwnerIndex, selects


def pod(name, labels):
    meta = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    return decode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}})


def owner(name, selector, kind="ReplicaSet"):
    meta = {"name": name, "namespace": "default", "uid": name}
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    spec = {"selector": selector, "template": {}}
    return decode({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})


PODS = [
    pod("bare", {}),
    pod("front", {"app": "web", "tier": "front"}),
    pod("web", {"app": "web"}),
    pod("db", {"app": "db", "tier": "back"}),
]
OWNERS = [
    owner("web", {"matchLabels": {"app": "web"}}),
    owner("front", {"matchLabels": {"app": "web", "tier": "front"}}),
    owner("labelled", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
    owner("rc", {"app": "db"}, "ReplicationController"),
]


def children(pods: Sequence):
    index = ChildIndex[str, Pod]()
    for one in pods:
        index.put(one.metadata.name, one)
    return index


def owners(found: Sequence):
    index = OwnerIndex()
    for one in found:
        index.put(one)
    return index


def names(found):
    return [one.metadata.name for one in found]


@pytest.mark.parametrize("one", OWNERS, ids=names(OWNERS))
def test_all_objects_that_an_owner_selects_are_selectable(one):
    selected = [each for each in PODS if selects(one, each)]
    assert selected
    assert [each for each in children(PODS).selectable(one) if selects(one, each)] == selected


@pytest.mark.parametrize("one", PODS, ids=names(PODS))
def test_all_owners_that_select_an_object_are_found(one):
    expected = [each for each in OWNERS if selects(each, one)]
    found = [each for each in owners(OWNERS).selecting(one) if selects(each, one)]
    assert sorted(names(found)) == sorted(names(expected))


def test_objects_and_owners_with_other_labels_are_not_compared():
    web, front, labelled, rc = OWNERS
    assert names(children(PODS).selectable(front)) == ["front"]
    assert names(children(PODS).selectable(rc)) == ["db"]
    assert names(children(PODS).selectable(labelled)) == names(PODS)
    assert names(owners([web, labelled, rc]).selecting(PODS[3])) == ["labelled", "rc"]


def test_owners_that_share_a_label_are_found_by_another_one():
    """All ReplicaSets of an application may require its label, which comes first by name."""
    shop = [
        owner(name, {"matchLabels": {"app": "shop", "part": name}}) for name in ("a", "b", "c", "d")
    ]
    assert names(owners(shop).selecting(pod("x", {"app": "shop", "part": "c"}))) == ["a", "c"]


def test_an_object_with_other_labels_is_found_by_these():
    index = children(PODS)
    index.put("web", pod("web", {"app": "db"}))
    index.pop("db")
    index.pop("missing")
    assert names(index.selectable(OWNERS[3])) == ["web"]
    assert names(index.selectable(OWNERS[0])) == ["front"]


def test_an_owner_with_another_selector_is_found_by_this_one():
    index = owners(OWNERS)
    index.put(owner("web", {"matchLabels": {"app": "db"}}))
    index.pop("rc")
    index.pop("missing")
    assert names(index.selecting(PODS[3])) == ["labelled", "web"]
    assert names(index.selecting(PODS[1])) == ["labelled", "front"]
    assert names(index.selecting(PODS[2])) == ["labelled"]
