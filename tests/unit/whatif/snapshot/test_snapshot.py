"""Snapshots: their objects and the time at which they were taken."""

from __future__ import annotations

import gc
import json

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.snapshot import DEFAULT_START, encode_snapshot, read_snapshot

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def snapshot(tmp_path, *objects):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return read_snapshot(str(path))


def test_without_any_timestamp_time_starts_at_a_fixed_instant(tmp_path):
    assert snapshot(tmp_path, NODE).taken_at == DEFAULT_START


def test_a_snapshot_that_was_read_counts_as_old_in_garbage_collections(tmp_path, unfrozen):
    manifest = snapshot(tmp_path, NODE).manifests[0]
    assert gc.is_tracked(manifest)
    assert any(one is manifest for one in gc.get_objects(generation=2))


def test_reading_a_snapshot_leaves_frozen_objects_frozen(tmp_path, unfrozen):
    gc.freeze()
    snapshot(tmp_path, NODE)
    assert gc.get_freeze_count()


@pytest.mark.parametrize(
    "newest",
    [
        {"metadata": {"name": "n", "creationTimestamp": "2026-05-05T00:00:00Z"}},
        {"status": {"startTime": "2026-05-05T00:00:00Z"}},
        {"status": {"x": [{"lastTransitionTime": "2026-05-05T00:00:00Z"}]}},
        {"status": {"x": [{"lastHeartbeatTime": "2026-05-05T02:00:00+02:00"}]}},
        {"status": {"c": [{"state": {"running": {"startedAt": "2026-05-05T00:00:00Z"}}}]}},
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {"renewTime": "2026-05-05T00:00:00.000000Z"},
        },
    ],
)
def test_the_newest_timestamp_of_metadata_and_status_is_the_start_time(tmp_path, newest):
    older = {**NODE, "metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    taken = snapshot(tmp_path, older, {**NODE, **newest}).taken_at
    assert taken == parse_timestamp("2026-05-05T00:00:00Z")


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"metadata": {"name": "n", "annotations": {"startTime": "2030-01-01T00:00:00Z"}}},
        {"metadata": {"name": "n", "deletionTimestamp": "2030-01-01T00:00:00Z"}},
        {"spec": {"startTime": "2030-01-01T00:00:00Z"}},
        {"status": {"note": "2030-01-01T00:00:00Z"}},
    ],
)
def test_other_timestamps_do_not_count(tmp_path, elsewhere):
    assert snapshot(tmp_path, {**NODE, **elsewhere}).taken_at == DEFAULT_START


def test_fractions_of_a_second_count(tmp_path):
    taken = snapshot(tmp_path, {**NODE, "status": {"startTime": "2026-05-05T00:00:00.25Z"}})
    assert taken.taken_at == parse_timestamp("2026-05-05T00:00:00Z") + 250_000_000


def test_an_invalid_timestamp_is_refused_with_its_object(tmp_path):
    with pytest.raises(InputError, match=r"Node n: status.startTime: 'soon' is not an RFC 3339"):
        snapshot(tmp_path, {**NODE, "status": {"startTime": "soon"}})


def test_a_cluster_needs_a_node(tmp_path):
    with pytest.raises(InputError, match=r"dump.json: contains no Node"):
        snapshot(tmp_path)


def test_workloads_with_too_many_replicas_are_refused(tmp_path):
    endless = {"apiVersion": "apps/v1", "kind": "Deployment",
               "metadata": {"name": "d"}, "spec": {"replicas": 10**12}}  # fmt: skip
    with pytest.raises(InputError, match=r"Deployment default/d: spec.replicas: 1000000000000 is"):
        snapshot(tmp_path, NODE, endless)


def test_a_snapshot_that_fairlead_wrote_contains_its_time(tmp_path):
    """The time may be later than the newest timestamp of the objects."""
    path = tmp_path / "after.json"
    old = {**NODE, "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    path.write_bytes(encode_snapshot([old], parse_timestamp("2026-01-01T00:05:00.25Z")))
    assert read_snapshot(str(path)).taken_at == parse_timestamp("2026-01-01T00:05:00.25Z")


def test_written_pods_have_their_own_names(tmp_path):
    """A pod that replaced another pod in a simulation is known by its name in the snapshot."""
    replaced, other = {"fairlead.dev/replaces": "web-1"}, {"team": "shop"}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}}
        for name, annotations in (("a", replaced), ("b", {**replaced, **other}), ("c", other))
    ]
    written = json.loads(encode_snapshot(pods, 0))["items"]
    assert [pod["metadata"].get("annotations") for pod in written] == [None, other, other]
    assert pods[0]["metadata"]["annotations"] == replaced


def test_an_invalid_time_in_a_snapshot_that_fairlead_wrote_is_refused(tmp_path):
    path = tmp_path / "after.json"
    path.write_bytes(encode_snapshot([NODE], 0).replace(b"1970-01-01T", b"yesterday "))
    with pytest.raises(InputError, match=r"after.json: metadata.annotations.fairlead.dev/taken-at"):
        read_snapshot(str(path))


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ([], "metadata: expected an object, got a list"),
        ({"annotations": []}, "metadata.annotations: expected an object, got a list"),
        (
            {"annotations": {"fairlead.dev/taken-at": 7}},
            "metadata.annotations[fairlead.dev/taken-at]: expected text, got a number",
        ),
        (
            {"annotations": {"fairlead.dev/unreadable": ["pods"]}},
            "metadata.annotations[fairlead.dev/unreadable]: expected text, got a list",
        ),
    ],
)
def test_annotations_of_a_list_with_a_wrong_type_are_refused(tmp_path, metadata, says):
    path = tmp_path / "dump.json"
    whole = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": [NODE]}
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError) as caught:
        read_snapshot(str(path))
    assert str(caught.value) == f"{path}: {says}"
