"""CompactStorage keeps most objects as text and behaves like Storage."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.storage.compact_storage import OVERHEAD_BYTES, CompactStorage
from fairlead.apiserver.storage.storage import AddedText, Storage

KINDS = [find_kind("configmap"), find_kind("secret")]
STEPS = st.tuples(
    st.sampled_from(["put", "put", "add", "remove", "find", "rewrite"]),
    st.sampled_from(KINDS),
    st.sampled_from("ab"),
    st.sampled_from("xyz"),
    st.integers(0, 9),
)


def manifest(kind, namespace, name, count):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind.kind, "metadata": meta, "data": {"n": str(count)}}


def done(storage, step):
    what, kind, namespace, name, count = step
    if what == "put":
        return storage.put(kind, manifest(kind, namespace, name, count))
    if what == "find":
        return storage.find(kind, namespace, name)
    if what == "add":
        return added(storage, kind, namespace, name, count)
    if what == "rewrite":
        return storage.rewrite(kind, lambda obj: rewritten(obj, name, count))
    try:
        return storage.remove(kind, namespace, name)
    except KeyError:
        return None


def rewritten(obj, name, count):
    """Return the object called `name` with other data, and any other object itself."""
    return {**obj, "data": {"n": str(count)}} if obj["metadata"]["name"] == name else obj


def added(storage, kind, namespace, name, count):
    """Add a new object as text; return what listeners receive, or None if it exists."""
    if storage.find(kind, namespace, name) is not None:
        return None
    seen = []

    def text_at(version):
        obj = manifest(kind, namespace, name, count)
        meta = {**obj["metadata"], "resourceVersion": str(version)}
        return json.dumps({**obj, "metadata": meta}, separators=(",", ":")).encode()

    unsubscribe = storage.subscribe(seen.append)
    storage.add_text(kind, (namespace, name), text_at)
    unsubscribe()
    (change,) = seen
    return change.key, change.object, json.loads(change.text), change.previous


@given(st.lists(STEPS), st.integers(1, 4))
def test_both_storages_give_the_same_results_for_any_steps(steps, hot_max):
    warm, cold = Storage(), CompactStorage(hot_max=hot_max)
    for step in steps:
        assert done(cold, step) == done(warm, step)
    for kind in KINDS:
        assert list(cold.items(kind)) == list(warm.items(kind))
        assert list(cold.items(kind, "a")) == list(warm.items(kind, "a"))
        assert list(cold.unsorted(kind)) == list(warm.unsorted(kind))
        for namespace, name in [("a", "x"), ("b", "z")]:
            assert cold.find(kind, namespace, name) == warm.find(kind, namespace, name)
    assert cold.changes_since(0) == warm.changes_since(0)
    values = [obj for objects in cold._objects.values() for obj in objects.values()]
    assert sum(isinstance(value, dict) for value in values) <= hot_max


def test_restored_objects_above_the_limit_of_decoded_objects_are_kept_as_text():
    kind = KINDS[0]
    objects = [(kind, manifest(kind, "a", str(number), number)) for number in range(9)]
    cold = CompactStorage(hot_max=2)
    cold.restore(objects, 9)
    assert list(cold.unsorted(kind)) == [obj for _, obj in objects]
    assert cold.version == 9
    assert [type(value) for value in cold._objects["configmaps"].values()].count(bytes) == 7


def test_a_full_disk_refuses_new_texts():
    storage = CompactStorage()
    storage.has_room = lambda: False
    storage.look_for_room()
    with pytest.raises(ApiError, match="space exceeded"):
        storage.add_text(KINDS[0], ("a", "x"), lambda version: b"{}")
    assert storage.version == 0


def test_a_change_has_no_other_members():
    change = AddedText(KINDS[0], ("a", "x"), b"{}", 1)
    assert change.object == {}
    with pytest.raises(AttributeError, match="objet"):
        change.objet  # noqa: B018


def test_an_object_that_is_read_again_is_not_decoded_again():
    kind, storage = KINDS[0], CompactStorage(hot_max=2)
    for name in "wxyz":
        storage.put(kind, manifest(kind, "a", name, 1))
    found = storage.find(kind, "a", "w")
    assert storage.find(kind, "a", "w") is found
    assert [type(one) for one in storage._objects["configmaps"].values()] == [
        dict,
        bytes,
        bytes,
        dict,
    ]


def test_events_do_not_displace_other_decoded_objects():
    event, storage = find_kind("event"), CompactStorage(hot_max=2)
    storage.put(KINDS[0], manifest(KINDS[0], "a", "x", 1))
    for name in "xyz":
        storage.put(event, manifest(event, "a", name, 1))
    assert [type(one) for one in storage._objects["configmaps"].values()] == [dict]
    assert [type(one) for one in storage._objects["events"].values()].count(bytes) == 2


def test_removing_a_missing_object_raises():
    with pytest.raises(KeyError):
        CompactStorage().remove(KINDS[0], "a", "x")


@pytest.mark.parametrize("storage", [Storage(), CompactStorage()], ids=["warm", "cold"])
def test_restored_texts_are_decoded_to_their_objects(storage):
    kind = KINDS[0]
    obj = manifest(kind, "a", "x", 1)
    storage.restore_texts([(kind, ("a", "x"), json.dumps(obj).encode())], 7)
    assert (storage.find(kind, "a", "x"), storage.version) == (obj, 7)
    changed = storage.put(kind, manifest(kind, "a", "x", 2))
    assert storage.changes_since(7)[0].previous == obj
    assert changed["metadata"]["resourceVersion"] == "8"


def test_the_log_is_shorter_if_objects_are_large():
    """The log contains at least the newest change."""
    kind, storage = KINDS[0], CompactStorage(100, log_bytes_max=1_000)
    for count in range(20):
        storage.put(kind, manifest(kind, "a", "x", count))
    known = len(storage.changes_since(storage.version - 5))
    assert known == 5
    with pytest.raises(ApiError):
        storage.changes_since(1)
    storage.put(kind, manifest(kind, "a", "y", "y" * 5_000))
    assert [one.object["metadata"]["name"] for one in storage.changes_since(20)] == ["y"]
    with pytest.raises(ApiError):
        storage.changes_since(19)


@given(st.lists(STEPS), st.integers(1, 8), st.integers(0, 1_000))
def test_a_log_that_is_bounded_by_bytes_has_the_newest_changes(steps, capacity, bytes_max):
    """The log contains as many of the newest changes as fit."""
    whole, bounded = Storage(100), CompactStorage(capacity, log_bytes_max=bytes_max)
    for step in steps:
        done(whole, step)
        done(bounded, step)
    oldest = bounded.version - _reach(bounded)
    assert bounded.changes_since(oldest) == whole.changes_since(oldest)
    sizes = [len(json.dumps(one.object, separators=(",", ":"))) for one in whole.changes_since(0)]
    sizes.reverse()
    fitting = [n for n in range(1, len(sizes) + 1) if n == 1 or sum(sizes[:n]) <= bytes_max]
    assert _reach(bounded) == min(capacity, max(fitting, default=0))


def _reach(storage):
    """Return the number of changes in the log."""
    for number in range(storage.version, -1, -1):
        try:
            return len(storage.changes_since(storage.version - number))
        except ApiError:
            continue
    raise AssertionError


def test_the_text_of_an_object_is_encoded_once():
    """The log and all readers share the text; a deleted object's text is not kept."""
    kind, storage = KINDS[0], CompactStorage()
    changes = []
    storage.subscribe(changes.append)
    stored = storage.put(kind, manifest(kind, "a", "x", 1))
    assert storage.stored_text(kind, stored) is changes[0].text
    assert json.loads(changes[0].text) == stored
    assert storage.stored_text(kind, {**stored}) is None  # equal, but not the stored object
    storage.remove(kind, "a", "x")
    assert storage.stored_text(kind, stored) is None
    assert not storage._hot


# --- bounds --------------------------------------------------------------------------------------


@given(st.lists(STEPS), st.integers(1, 3))
def test_the_counted_size_is_that_of_the_objects(steps, hot_max):
    storage = CompactStorage(hot_max=hot_max)
    for step in steps:
        done(storage, step)
    objects = [obj for kind in KINDS for obj in storage.unsorted(kind)]
    sizes = [len(json.dumps(obj, separators=(",", ":"))) + OVERHEAD_BYTES for obj in objects]
    assert storage._bytes == sum(sizes)


def test_a_full_store_refuses_growth_but_accepts_what_frees_space():
    kind, storage = KINDS[0], CompactStorage(bytes_max=10_000)
    for number in range(10):
        storage.put(kind, manifest(kind, "a", f"n{number}", "x" * 300))
    with pytest.raises(ApiError, match="etcdserver: mvcc: database space exceeded"):
        storage.put(kind, manifest(kind, "a", "another", "x" * 1_000))
    with pytest.raises(ApiError, match="space exceeded"):
        storage.put(kind, manifest(kind, "a", "n0", "x" * 2_000))
    assert storage.find(kind, "a", "n0")["data"] == {"n": "x" * 300}
    assert (storage.version, storage.changes_since(10)) == (10, [])
    smaller = storage.put(kind, manifest(kind, "a", "n0", "x"))
    ending = {**smaller["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []}
    storage.put(kind, {**smaller, "metadata": {**ending, "labels": {"a": "b" * 3_000}}})
    for number in range(10):
        storage.remove(kind, "a", f"n{number}")
    storage.put(kind, manifest(kind, "a", "another", "x" * 1_000))


def test_restored_objects_count_towards_the_size_limit():
    kind, storage = KINDS[0], CompactStorage(bytes_max=2_000)
    text = json.dumps(manifest(kind, "a", "x", "x" * 1_000)).encode()
    storage.restore_texts([(kind, ("a", "x"), text)], 1)
    with pytest.raises(ApiError, match="space exceeded"):
        storage.put(kind, manifest(kind, "a", "y", "y" * 500))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"a": "x" * 1_600_000}, "etcdserver: request is too large"),
        ({f"{n:0250}": "" for n in range(6_500)}, "etcdserver: request is too large"),
        (
            {"a": "x" * 2_200_000},
            (
                "rpc error: code = ResourceExhausted desc = "
                "trying to send message larger than max (2200038 vs. 2097152)"
            ),
        ),
    ],
    ids=["one value", "many keys", "more than the client of etcd sends"],
)
def test_an_object_that_etcd_would_refuse_is_refused(data, why):
    kind, storage = KINDS[0], CompactStorage()
    with pytest.raises(ApiError) as refusal:
        storage.put(kind, {**manifest(kind, "a", "x", 1), "data": data})
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (500, "", why)
    assert storage.find(kind, "a", "x") is None


@pytest.mark.parametrize(
    "data", [{"a": "\n" * 1_000_000}, {"a": "\x00" * 1_000_000}], ids=["newlines", "zeros"]
)
def test_an_object_that_only_its_json_makes_large_is_stored(data):
    kind, storage = KINDS[0], CompactStorage()
    stored = storage.put(kind, {**manifest(kind, "a", "x", 1), "data": data})
    assert storage.find(kind, "a", "x") == stored
