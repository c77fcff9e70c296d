"""The gang workloads at a small size: all gangs are placed in one session."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.bench.batch_workloads import BATCH_WORKLOADS
from fairlead.bench.measure import measure
from fairlead.bench.workload import Setting
from fairlead.bench.workloads import WORKLOADS


def small(workload, nodes):
    """Return a workload with the first `nodes` nodes and one gang."""

    def build():
        setting = workload.build()
        kinds = [type(one).__name__ for one in setting.objects]
        first = kinds.index("Node")
        kept = setting.objects[first : first + nodes]
        others = [one for one, kind in zip(setting.objects, kinds, strict=True) if kind != "Node"]
        return Setting([*kept, *others], setting.initial, setting.measured[:100])

    return replace(workload, build=build)


def test_the_gang_workloads_are_in_the_list_of_workloads():
    assert [w.name for w in BATCH_WORKLOADS] == [
        "Batch/1000Nodes_5000Tasks",
        "Batch/5000Nodes_10000Tasks",
    ]
    assert all(WORKLOADS[w.name] is w for w in BATCH_WORKLOADS)


def test_a_gang_is_placed():
    measured = measure(small(BATCH_WORKLOADS[0], 10))
    assert measured.pods_per_second > 0
    assert measured.upstream_threshold == BATCH_WORKLOADS[0].threshold
