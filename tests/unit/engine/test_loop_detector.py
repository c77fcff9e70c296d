"""LoopWatch: the records and events about preemption loops."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    NominationsWasted,
    PodPreempting,
    WorkloadStarving,
)
from fairlead.engine.loop_detector import STARVING_AFTER, LoopDetector


class Listener:
    """A reporter that stores everything."""

    def __init__(self):
        self.records = []

    def report(self, record):
        """Store `record`."""
        self.records.append(record)


def preempting(by, victim, at=0, priority=0):
    """`by` preempts a pod of `victim`; both pods have the names of their workloads."""
    return PodPreempting(
        pod=ObjectRef("Pod", "ns", by, by),
        node="n",
        victims=(ObjectRef("Pod", "ns", victim, f"{victim}-{at}"),),
        pdb_violations=0,
        rule="cheapest first",
        candidates=1,
        equals=1,
        at=at,
        workload=f"Job/ns/{by}",
        victim_workloads=(f"Job/ns/{victim}",),
        victim_priorities=(priority,),
    )


def test_a_loop_is_reported_by_a_record_and_an_event():
    """The cycle with its rules is a record for the reporter and an event of the victim."""
    listener = Listener()
    watch = LoopDetector(listener)
    assert watch.next_deadline() is None
    watch.report(preempting("a", "b", at=1))
    watch.report(preempting("b", "a", at=2))
    cycle = next(r for r in listener.records if isinstance(r, DisplacementCycle))
    assert cycle.workloads == ("Job/ns/a", "Job/ns/b")
    assert cycle.rules == ("cheapest first", "cheapest first")
    assert watch.next_deadline() == 0
    (event,) = watch.handle_deadline(2)
    assert isinstance(event, RecordEvent)
    assert (event.type, event.reason) == ("Warning", "PreemptionLoop")
    assert event.note == (
        "Job/ns/a displaces Job/ns/b (cheapest first), "
        "Job/ns/b displaces Job/ns/a (cheapest first): once"
    )
    assert watch.next_deadline() is None


def test_starvation_is_reported():
    """The record names a workload that is displaced too often."""
    listener = Listener()
    watch = LoopDetector(listener)
    for i in range(STARVING_AFTER + 1):
        watch.report(preempting(f"strong{i}", "weak", at=i))
    (starving,) = [r for r in listener.records if isinstance(r, WorkloadStarving)]
    assert (starving.workload, starving.times) == ("Job/ns/weak", STARVING_AFTER + 1)


def test_a_gang_that_is_evicted_as_a_whole_is_displaced_once():
    """One decision evicts all eight members, so nothing is displaced again and again."""
    listener = Listener()
    watch = LoopDetector(listener)
    gang = tuple(ObjectRef("Pod", "ns", f"weak-{i}", f"weak-{i}") for i in range(8))
    record = replace(
        preempting("strong", "weak"),
        victims=gang,
        victim_workloads=("Job/ns/weak",) * len(gang),
        victim_priorities=(0,) * len(gang),
    )
    watch.report(record)
    assert listener.records == [record]
    watch.report(preempting("weak", "strong", at=1))
    watch.report(replace(record, victims=tuple(replace(v, uid=f"new-{v.uid}") for v in gang)))
    cycles = [one for one in listener.records if isinstance(one, DisplacementCycle)]
    assert [one.times for one in cycles] == [1, 2]


def test_no_warning_is_about_pods_with_a_negative_priority():
    """They exist to give way to other pods; a simulation lists their displacements."""
    listener = Listener()
    watch = LoopDetector(listener)
    for at in range(STARVING_AFTER + 1):
        watch.report(preempting(f"strong-{at}", "weak", at, priority=-10))
    [starving] = [r for r in listener.records if isinstance(r, WorkloadStarving)]
    assert (starving.times, starving.priority) == (STARVING_AFTER + 1, -10)
    assert watch.next_deadline() is None


def test_warnings_about_a_starving_workload_become_rare():
    """One urgent workload can displace thousands of pods of another."""
    listener = Listener()
    watch = LoopDetector(listener)
    for i in range(50):
        watch.report(preempting(f"strong{i}", "weak", at=i))
    starving = [r.times for r in listener.records if isinstance(r, WorkloadStarving)]
    assert starving == list(range(6, 50, 5))
    warnings = [one for one in watch.handle_deadline(50) if one.reason == "Starving"]
    assert [one.note.split()[-2] for one in warnings] == ["6", "11", "21", "41"]


def test_warnings_about_wasted_nominations_become_rare():
    """A forbidden preemption is retried without a pause. The records count each nomination."""
    listener = Listener()
    watch = LoopDetector(listener)
    for i in range(25):
        watch.report(preempting("a", "b", at=i))
    wasted = [r.times for r in listener.records if isinstance(r, NominationsWasted)]
    assert wasted == [3, 6, 9, 12, 15, 18, 21, 24]
    warnings = watch.handle_deadline(25)
    notes = [one.note for one in warnings if one.reason == "NominationsWasted"]
    assert notes == [
        f"nominated {times} times in a row, but never placed on the nominated node"
        for times in (3, 6, 12, 24)
    ]


def test_records_are_forwarded_before_new_records():
    """The next reporter gets the records in the order of their creation."""
    listener = Listener()
    watch = LoopDetector(listener)
    watch.report(preempting("a", "b"))
    record = preempting("b", "a", at=1)
    watch.report(record)
    assert listener.records[1] is record
    assert isinstance(listener.records[2], DisplacementCycle)


def test_a_terminating_victim_is_not_counted_again():
    """Several preemptors may name the same terminating pod."""
    listener = Listener()
    watch = LoopDetector(listener)
    for number in range(2 * STARVING_AFTER + 2):
        watch.report(preempting(f"by-{number}", "low"))
    assert not [one for one in listener.records if isinstance(one, WorkloadStarving)]
