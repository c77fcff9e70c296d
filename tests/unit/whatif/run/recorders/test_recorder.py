"""What a run reports about preemption."""

from __future__ import annotations

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.reporter import PodPreempting
from fairlead.whatif.run.recorders.recorder import Recorder


def preempting(by, *victims):
    return PodPreempting(
        pod=ObjectRef("Pod", "ns", by, by),
        node="n",
        victims=tuple(ObjectRef("Pod", "ns", name, name) for name in victims),
        pdb_violations=0,
        rule="cheapest first",
        candidates=1,
        equals=1,
        at=0,
        workload=f"Job/ns/{by}",
        victim_workloads=tuple(f"Job/ns/{name}" for name in victims),
    )


def test_a_victim_that_terminates_already_is_counted_once():
    """A second preemptor may need the node of a pod that the first has preempted."""
    recorder = Recorder(now=0)
    recorder.report(preempting("first", "low"))
    recorder.report(preempting("second", "low", "other"))
    assert [(one.pod.name, one.by) for one in recorder.preempted] == [
        ("low", "ns/first"),
        ("other", "ns/second"),
    ]
