"""Pod counts over time."""

from __future__ import annotations

from fairlead.api.objects import ObjectMeta, Pod, PodSpec
from fairlead.whatif.outcome.run_outcome import PodCountSample
from fairlead.whatif.run.recorders.pod_count_recorder import PENDING, RUNNING, PodCountRecorder


def test_changes_at_one_instant_are_one_sample():
    """The report shows one point of each priority per instant."""
    recorder = PodCountRecorder()
    recorder.shift(0, PENDING, +1, now=5)
    recorder.shift(0, PENDING, -1, now=5)
    recorder.shift(0, RUNNING, +1, now=5)
    recorder.preempted(0, now=6)
    assert recorder.samples == [
        PodCountSample(5, 0, pending=0, running=1, down=0, preempted=0, evicted=0),
        PodCountSample(6, 0, pending=0, running=1, down=0, preempted=1, evicted=0),
    ]


def test_a_load_is_one_sample_of_each_priority():
    """All pods of a snapshot are loaded at one instant, in any order of priorities."""
    recorder = PodCountRecorder()
    recorder.begin_load()
    for priority in (0, 7, 0):
        recorder.shift(priority, RUNNING, +1, now=1)
    assert recorder.samples == []
    recorder.end_load(now=1)
    assert [(one.priority, one.running) for one in recorder.samples] == [(0, 2), (7, 1)]


def test_a_node_that_stops_adds_one_sample_of_each_priority():
    """The priorities of the pods on a node may alternate."""
    pods = [
        Pod(metadata=ObjectMeta(uid=f"u{number}"), spec=PodSpec(priority=number % 2))
        for number in range(6)
    ]
    recorder = PodCountRecorder()
    for pod in pods:
        recorder.add(pod, RUNNING, now=1, is_serving=True)
    recorder.samples.clear()
    recorder.node_changed(pods[:4], now=2, is_serving=False)
    recorder.node_changed(pods, now=3, is_serving=False)  # four of them are down already
    recorder.remove(pods[0], RUNNING, now=4)
    recorder.node_changed(pods[1:], now=5, is_serving=True)
    shown = [(one.at, one.priority, one.running, one.down) for one in recorder.samples]
    assert shown == [
        (2, 0, 1, 2),
        (2, 1, 1, 2),
        (3, 0, 0, 3),
        (3, 1, 0, 3),
        (4, 0, 0, 2),
        (5, 1, 3, 0),
        (5, 0, 2, 0),
    ]


def test_samples_since_begin_with_the_counts_at_that_time():
    """The counts begin with the last earlier sample of each priority."""
    recorder = PodCountRecorder()
    recorder.shift(0, PENDING, +1, now=1)
    recorder.evicted(0, now=2)
    recorder.shift(3, RUNNING, +1, now=9)
    assert [(one.at, one.priority) for one in recorder.samples_since(4)] == [(4, 0), (9, 3)]


def test_samples_since_count_only_later_preemptions_and_evictions():
    """As in the outcome's lists: pods that were displaced before the change are not in them."""
    recorder = PodCountRecorder()
    recorder.preempted(0, now=1)
    recorder.evicted(0, now=2)
    recorder.evicted(0, now=5)
    recorder.preempted(3, now=6)
    shown = [
        (one.at, one.priority, one.preempted, one.evicted) for one in recorder.samples_since(4)
    ]
    assert shown == [(4, 0, 0, 0), (5, 0, 0, 1), (6, 3, 1, 0)]
