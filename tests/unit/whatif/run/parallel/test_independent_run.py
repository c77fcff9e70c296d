"""Runs with other seeds use all cores, and have the results that one core would compute."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from fairlead import whatif
from fairlead.whatif.run.parallel.independent_run import independent_runs
from fairlead.whatif.run.progress import NoProgress

STORE = Path(__file__).parents[5] / "examples" / "store" / "store.yaml"
NAMES = ("a", "b", "c")


def set_cores(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(count)))


def processes(**how):
    runs = independent_runs(lambda number, _: (number, os.getpid()), NAMES, NoProgress(), **how)
    numbers, used = zip(*runs, strict=True)
    assert numbers == (0, 1, 2)
    return set(used)


def test_each_core_gets_a_process(monkeypatch):
    set_cores(monkeypatch, 2)
    used = processes(in_one_process=False)
    assert len(used) == 2
    assert os.getpid() not in used


def test_no_process_keeps_the_memory_of_many_runs(monkeypatch):
    set_cores(monkeypatch, 2)
    names = [*map(str, range(40))]
    runs = independent_runs(lambda *_: os.getpid(), names, NoProgress(), in_one_process=False)
    assert max(Counter(runs).values()) <= 4


@pytest.mark.parametrize(
    ("cores", "has_extenders"),
    [
        pytest.param(1, False, id="there is one core"),
        pytest.param(2, True, id="connections to extenders cannot be shared"),
    ],
)
def test_all_runs_take_place_in_this_process_if(monkeypatch, cores, has_extenders):
    set_cores(monkeypatch, cores)
    assert processes(in_one_process=has_extenders) == {os.getpid()}


class Shown:
    def __init__(self):
        self.phases = []

    def begin(self, phase, total):
        self.phases.append(phase)

    def reach(self, done, now_s):
        pass


def test_one_core_shows_the_runs_in_turn(monkeypatch):
    set_cores(monkeypatch, 1)
    shown = Shown()
    runs = independent_runs(
        lambda number, progress: progress.reach(0, 0.0), NAMES, shown, in_one_process=False
    )
    assert list(runs) == [None] * 3
    assert shown.phases == list(NAMES)


def test_an_answer_with_seeds_does_not_depend_on_the_number_of_cores(monkeypatch):
    snapshot = whatif.read_snapshot(STORE)
    change = whatif.ClusterChange(scale=("deploy/store/frontend=30",))

    def certainty(cores):
        set_cores(monkeypatch, cores)
        answer = whatif.what_if(snapshot, change, whatif.Conditions(seeds=4))
        assert answer.seeds == 4
        return answer.certainty

    assert certainty(3) == certainty(1) != ()
