"""An answer counts all pods of a workload as wanted that get a node only without the change."""

from __future__ import annotations

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.question import what_if


def test_pods_that_wait_from_the_start_to_the_end_are_wanted(make, snapshot):
    """Without the change, a waiting pod of the Job preempts the pod on node b, which fails."""
    victim = make.pod("victim", node_name="b", priority=-1)
    pods = [make.pod(name, owner="j", priority=5) for name in ("j-1", "j-2")]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    dump = snapshot(make.node("b", "1"), victim, *pods)
    rows = what_if(dump, ClusterChange(failures=Failures(fail_node=("b",)))).effect.workloads
    (row,) = (row for row in rows if row.workload.kind == "Job")
    assert row.short_words == "1 pending"
    ready = row.readiness
    assert (ready.wanted, ready.before, ready.lowest, ready.at_end) == (2, 0, 0, 0)
