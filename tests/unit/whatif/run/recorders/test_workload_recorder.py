"""WorkloadRecorder: how long a workload has too few ready pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.run.recorders.workload_recorder import PodTransition, Step, WorkloadRecorder

WEB = WorkloadRef("Deployment", "ns", "web")
ETL = WorkloadRef("Job", "ns", "etl")


@pytest.mark.parametrize(
    "steps",
    [
        [(10, "unready"), (11, "ready"), (60, "unready")],
        [(10, "unready"), (11, "ready"), (50, "unready")],
        [(60, "unready")],
    ],
    ids=[
        "it falls once more in the last instant: to the end",
        "it falls before the end and stays low: to the end",
        "it falls only in the last instant: to the end",
    ],
)
def test_pods_that_are_not_ready_at_the_end_stay_so(steps):
    transitions = [PodTransition(seconds(at), WEB, "", Step(step)) for at, step in steps]
    recorder = WorkloadRecorder(transitions=transitions)
    found = dict(recorder.readiness([], {WEB: 1}, 0, seconds(60)))[WEB]
    assert (found.lowest, found.at_end, found.lowest_for) == (0, 0, None)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([(10, "unready"), (15, "ready")], "5s"),
        ([(10, "unready"), (15, "ready"), (20, "unready"), (22, "ready")], "7s in 2 gaps"),
        ([(10, "unready"), (15, "ready"), (20, "unready")], "to the end"),
    ],
    ids=["one gap", "two gaps", "the last gap does not end"],
)
def test_a_total_of_several_gaps_is_told_from_one_gap(steps, words):
    transitions = [PodTransition(seconds(at), WEB, "", Step(step)) for at, step in steps]
    recorder = WorkloadRecorder(transitions=transitions)
    found = dict(recorder.readiness([], {WEB: 1}, 0, seconds(60)))[WEB]
    before = replace(found, before=1)
    assert before.lowest_for_words == words


def ready_counts(steps, until):
    transitions = [PodTransition(seconds(at), ETL, "", Step(step)) for at, step in steps]
    recorder = WorkloadRecorder(transitions=transitions)
    return dict(recorder.readiness([], {ETL: 0}, 0, seconds(until)))[ETL]


def test_the_readiness_of_a_job_that_ended_does_not_depend_on_the_length_of_the_run():
    short, long = (ready_counts([(10, "unready"), (20, "unready")], until) for until in (30, 90))
    assert short == long
    assert (short.lowest, short.lowest_for) == (0, 0)


def test_a_job_that_was_down_for_a_time_differs_from_one_that_only_ended():
    ended = ready_counts([(20, "unready")], 30)
    assert ended != ready_counts([(5, "unready"), (8, "ready"), (20, "unready")], 30)
    assert ended != ready_counts([(20, "unready"), (21, "unready")], 30)
