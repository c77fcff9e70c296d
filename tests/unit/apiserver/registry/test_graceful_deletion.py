"""Graceful deletion: timestamps, grace periods and finalizers."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.deletion import Deletion


def going(obj):
    meta = obj["metadata"]
    return meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")


@pytest.fixture
def delete(store, now):
    """Deletes pod default/a after `after` seconds; returns the pod, or None if it was removed."""

    def act(after=0, **options):
        store.delete(POD, "default", "a", now + after * 10**9, Deletion(**options))
        return store.find(POD, "default", "a")

    return act


@pytest.mark.parametrize(
    ("pod_settings", "options", "expected"),
    [
        ({"node": "n"}, {}, ("2026-01-01T00:00:30Z", 30)),
        ({"node": "n", "terminationGracePeriodSeconds": 5}, {}, ("2026-01-01T00:00:05Z", 5)),
        ({"node": "n"}, {"grace_period_s": 60}, ("2026-01-01T00:01:00Z", 60)),
        ({"node": "n"}, {"grace_period_s": 2**62}, ("9999-12-31T23:59:59Z", 2**62)),
        ({"node": "n"}, {"grace_period_s": -1}, ("2026-01-01T00:00:01Z", 1)),
        ({"node": "n", "phase": "Running"}, {}, ("2026-01-01T00:00:30Z", 30)),
        ({"node": "n"}, {"grace_period_s": 0}, None),
        ({"node": "n", "terminationGracePeriodSeconds": 0}, {}, None),
        ({"node": "n", "phase": "Succeeded"}, {}, None),
        ({"node": "n", "phase": "Failed"}, {"grace_period_s": 60}, None),
        ({}, {}, None),
        ({}, {"grace_period_s": 60}, None),
    ],
    ids=[
        "30 s by default",
        "its own grace period",
        "the requested grace period",
        "a grace period beyond the calendar",
        "a negative one means 1 s",
        "the phase is ignored",
        "0 means at once",
        "its own 0 means at once",
        "a finished pod goes at once",
        "a failed pod goes at once with any grace period",
        "a pod without a node goes at once",
        "a pod without a node goes at once with any grace period",
    ],
)
def test_the_first_deletion_sets_timestamp_and_grace_period(
    store, pod, now, delete, *, pod_settings, options, expected
):
    store.put_as_is(pod(**pod_settings), now)
    left = delete(**options)
    assert (left and going(left)) == expected


def test_a_deletion_increments_the_generation(store, pod, now, delete):
    store.put_as_is(pod(node="n", metadata={"generation": 1}), now)
    assert delete()["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ({}, ("2026-01-01T00:00:30Z", 30)),
        ({"grace_period_s": 30}, ("2026-01-01T00:00:30Z", 30)),
        ({"grace_period_s": 90}, ("2026-01-01T00:00:30Z", 30)),
        ({"grace_period_s": 12}, ("2026-01-01T00:00:12Z", 12)),
        ({"grace_period_s": 0}, None),
    ],
    ids=["without a period", "the same", "longer", "shorter counts from the first", "at once"],
)
def test_a_second_deletion_can_only_shorten_the_grace_period(
    store, pod, now, delete, again, expected
):
    store.put_as_is(pod(node="n"), now)
    delete()
    version = store.version
    left = delete(after=4, **again)
    assert (left and going(left)) == expected
    assert (store.version == version) == (expected == ("2026-01-01T00:00:30Z", 30))


def test_an_immediate_deletion_is_an_update_and_a_deletion(store, pod, now):
    store.create(pod(), now)
    changes = []
    store.subscribe(changes.append)
    last = store.delete(POD, "default", "a", now)
    assert [change.type for change in changes] == ["MODIFIED", "DELETED"]
    assert going(changes[0].object) == ("2026-01-01T00:00:00Z", 0)
    assert last["metadata"]["resourceVersion"] == "3"


def test_other_kinds_are_deleted_at_once(store, now):
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, now)
    assert going(store.delete(NODE, "", "n", now)) == (None, None)
    assert store.find(NODE, "", "n") is None


def test_an_object_exists_until_its_last_finalizer_is_removed(store, now):
    meta = {"name": "n", "finalizers": ["x.io/a", "x.io/b"]}
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": meta}, now)
    assert going(store.delete(NODE, "", "n", now)) == ("2026-01-01T00:00:00Z", 0)
    store.patch(NODE, "", "n", {"metadata": {"finalizers": ["x.io/b"]}}, now)
    kept = store.get(NODE, "", "n")
    last = store.patch(NODE, "", "n", {"metadata": {"finalizers": None}}, now)
    assert store.find(NODE, "", "n") is None
    assert last["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Foreground", ["x.io/a", "foregroundDeletion"]),
        ("Orphan", ["x.io/a", "orphan"]),
        ("Background", ["x.io/a"]),
    ],
)
def test_a_deletion_leaves_only_the_finalizer_of_its_policy(store, now, policy, expected):
    # Validation forbids both finalizers, but a loaded object may have them.
    meta = {"name": "n", "finalizers": ["orphan", "x.io/a", "foregroundDeletion"]}
    store.put_as_is({"apiVersion": "v1", "kind": "Node", "metadata": meta}, now)
    last = store.delete(NODE, "", "n", now, Deletion(policy=policy))
    assert last["metadata"]["finalizers"] == expected


@pytest.mark.parametrize(
    "finalizers", [["orphan", "foregroundDeletion"], ["foregroundDeletion", "orphan"]]
)
def test_without_a_policy_the_first_finalizer_decides(store, now, finalizers):
    meta = {"name": "n", "finalizers": finalizers}
    store.put_as_is({"apiVersion": "v1", "kind": "Node", "metadata": meta}, now)
    last = store.delete(NODE, "", "n", now, Deletion())
    assert last["metadata"]["finalizers"] == finalizers[:1]


@pytest.mark.parametrize("finalizers", [["orphan", "x.io/a"], ["x.io/a", "orphan"]])
def test_a_deletion_keeps_the_order_of_unchanged_finalizers(store, now, finalizers):
    meta = {"name": "n", "finalizers": finalizers}
    store.put_as_is({"apiVersion": "v1", "kind": "Node", "metadata": meta}, now)
    last = store.delete(NODE, "", "n", now, Deletion(policy="Orphan"))
    assert last["metadata"]["finalizers"] == finalizers


def test_removing_the_last_finalizer_does_not_end_the_grace_period(store, pod, now, delete):
    store.put_as_is(pod(node="n", metadata={"finalizers": ["x.io/a"]}), now)
    delete()
    store.patch(POD, "default", "a", {"metadata": {"finalizers": None}}, now)
    assert going(store.get(POD, "default", "a")) == ("2026-01-01T00:00:30Z", 30)
    assert delete(grace_period_s=0) is None


def test_a_pod_with_a_finalizer_exists_after_its_grace_period(store, pod, now, delete):
    store.put_as_is(pod(node="n", metadata={"finalizers": ["x.io/a"]}), now)
    assert going(delete(grace_period_s=0)) == ("2026-01-01T00:00:00Z", 0)
    store.patch(POD, "default", "a", {"metadata": {"finalizers": None}}, now)
    assert store.find(POD, "default", "a") is None


@pytest.mark.parametrize(
    ("precondition", "words"),
    [
        (
            {"uid": "other"},
            (
                'Operation cannot be fulfilled on Pod "a": the UID in the precondition '
                "(other) does "
                "not match the UID in record (uid-1). The object might have been deleted and then "
                "recreated"
            ),
        ),
        (
            {"resource_version": "9"},
            (
                'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the '
                "precondition (9) "
                "does not match the ResourceVersion in record (1). The object might have been "
                "modified"
            ),
        ),
    ],
)
def test_preconditions_name_the_kind(store, pod, now, delete, precondition, words):
    store.create(pod(), now)
    with pytest.raises(ApiError) as refusal:
        delete(**precondition)
    assert (refusal.value.reason, refusal.value.message) == ("Conflict", words)
    assert delete(uid="uid-1", resource_version="1") is None


def test_a_grace_period_beyond_the_last_timestamp_can_be_shortened(store, pod, now, delete):
    store.put_as_is(pod(node="n"), now)
    delete(grace_period_s=2**62)
    assert going(delete(grace_period_s=5))[1] == 5
