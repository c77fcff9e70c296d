"""The what-if benchmarks use a cluster in which nothing happens without the change."""

from __future__ import annotations

import json

import pytest

from fairlead.bench.what_if import (
    WHAT_IF_WORKLOADS,
    WhatIfWorkload,
    measure_what_if,
    write_dump,
    write_snapshot,
)
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.snapshot import read_snapshot


def test_the_dump_has_as_many_nodes_and_pods_as_stated(tmp_path):
    write_dump(tmp_path / "dump.json", nodes=4, pods=80)
    kinds = [item["kind"] for item in json.loads((tmp_path / "dump.json").read_text())["items"]]
    assert (kinds.count("Node"), kinds.count("Pod")) == (4, 80)


def test_nothing_happens_without_a_change(tmp_path):
    write_dump(tmp_path / "dump.json", nodes=3, pods=60)
    snapshot = read_snapshot(str(tmp_path / "dump.json"))
    assert all(one.view is not None for one in snapshot.manifests)
    answer = what_if(snapshot, ClusterChange())
    assert (answer.difference.is_empty, len(answer.without.placed)) == (True, 60)


def test_every_what_if_is_measured_at_both_sizes():
    assert len([one for one in WHAT_IF_WORKLOADS.values() if not one.is_large]) == 6


def test_a_snapshot_file_has_the_same_cluster(tmp_path):
    write_dump(tmp_path / "dump.json", nodes=4, pods=130)
    write_snapshot(tmp_path / "snapshot.json", nodes=4, pods=130)
    found, plain = (
        [one.value for one in read_snapshot(str(tmp_path / name)).manifests]
        for name in ("snapshot.json", "dump.json")
    )
    first = len(found) - sum(one["kind"] == "Pod" for one in found)
    assert first == 4 + 2 * 4
    texts, expected = ([json.dumps(one, sort_keys=True) for one in some] for some in (found, plain))
    assert sorted(texts) == sorted(expected)


@pytest.mark.long
def test_a_what_if_is_measured():
    found = measure_what_if(WhatIfWorkload("small", 3, 60, ("--drain", "node-00000")))
    assert found.cpu_seconds > 0
