"""Two runs from one loaded state have the same results as two separate runs."""

from __future__ import annotations

import gc
import threading

import pytest
from msgspec.structs import replace

from fairlead.engine.core.command import CreateObject, ObjectRef, PatchObject
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.parallel import run_pair as run_pair_module
from fairlead.whatif.run.parallel.run_pair import run_pair
from fairlead.whatif.run.progress import NoProgress

EXTENDER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:9", filterVerb: filter, weight: 1}]
"""


@pytest.fixture
def pair(make, found):
    """Return an experiment with a pending pod, and the same with a change that helps the pod."""
    cluster = found(
        make.node("a", cpu="2"),
        make.workload(replicas=2, cpu="1"),
        make.pod("big", cpu="3"),
        make.pod("idle", cpu="0", node_name="a"),
    )
    without = Experiment(
        title="t", source="f.yaml", initial=tuple(cluster), start=10**18, steps_begin=None
    )
    bigger = PatchObject(ObjectRef("Deployment", "default", "web"), {"spec": {"replicas": 1}})
    steps = (ScriptedStep(0, (bigger,), "--scale", "web"),)
    return without, replace(without, steps=steps)


def in_another_thread(act):
    """Return the result of `act`, which is called while this process has two threads."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        return act()
    finally:
        release.set()
        thread.join()


def test_no_object_stays_frozen(pair, unfrozen):
    run_pair(*pair, NoProgress())
    assert gc.isenabled()
    assert not gc.get_freeze_count()


def test_a_program_with_frozen_objects_keeps_no_run(pair, unfrozen):
    """Objects that stay frozen would never be collected, and each run creates more of them."""
    gc.freeze()
    before = gc.get_freeze_count()
    run_pair(*pair, NoProgress())
    assert gc.isenabled()
    assert 0 < gc.get_freeze_count() <= before


def test_extenders_are_called_in_a_process_of_one_thread(pair, write):
    """No server listens at this address, as the reason of the pending pods says."""
    config = read_scheduler_config(write("c.yaml", EXTENDER), allow_extenders=True)
    without, changed = (replace(one, scheduler=config) for one in pair)
    after = run_pair(without, changed, NoProgress()).after
    reasons = {pod.reason for pod in after.pending}
    assert reasons
    assert not any("no extender can be reached here" in reason for reason in reasons)


def test_both_ways_have_the_same_outcomes_and_commands(pair):
    outcomes, logs = [], []
    for way in (lambda act: act(), in_another_thread):
        log = []
        outcomes.append(way(lambda log=log: run_pair(*pair, NoProgress(), log.append)))
        logs.append(log)
    assert outcomes[0] == outcomes[1]
    assert logs[0] == logs[1]
    assert outcomes[0].before.pods != outcomes[0].after.pods


def test_a_pod_that_neither_run_changes_exists_once(pair, monkeypatch):
    # An earlier test may have left a thread; then the runs do not share objects.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    runs = run_pair(*pair, NoProgress())
    before, after = runs.before, runs.after
    assert before.pods["default/idle"] is after.pods["default/idle"]


@pytest.fixture
def keeps_small(monkeypatch):
    """Let `run_pair` keep the start of a small cluster."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(run_pair_module, "_KEPT_OBJECTS_MIN", 0)


@pytest.fixture
def steps(pair):
    """Return a function that returns the changed experiment with another number of replicas."""
    _, changed = pair

    def scaled(replicas):
        patch = PatchObject(
            ObjectRef("Deployment", "default", "web"), {"spec": {"replicas": replicas}}
        )
        return replace(changed, steps=(ScriptedStep(0, (patch,), "--scale", "web"),))

    return scaled


def test_a_kept_start_leads_to_the_outcomes_of_separate_runs(pair, steps, keeps_small):
    """Each further experiment begins with the loaded cluster, not with the result of another."""
    runs = run_pair(*pair, NoProgress(), keeps_start=True)
    apart = run_pair(*pair, NoProgress())
    assert runs.started is not None
    assert (runs.before, runs.after) == (apart.before, apart.after)
    for replicas in (0, 5, 1, 0):
        further = replace(steps(replicas), steps_begin=runs.before.rest.after)
        expected = run_experiment(further).outcome
        assert runs.started.outcome(further, NoProgress()) == expected
        assert runs.outcome_of(further, "", NoProgress()) == expected


def test_an_experiment_that_starts_in_another_way_gets_a_run_of_its_own(pair, steps, keeps_small):
    runs = run_pair(*pair, NoProgress(), keeps_start=True)
    further = replace(steps(5), steps_begin=0, initial=pair[0].initial[:-1])
    assert runs.started.outcome(further, NoProgress()) is None
    assert runs.outcome_of(further, "", NoProgress()) == run_experiment(further).outcome


def test_an_invalid_step_fails_as_in_a_run_of_its_own(pair, keeps_small):
    runs = run_pair(*pair, NoProgress(), keeps_start=True)
    nameless = CreateObject({"apiVersion": "v1", "kind": "Node", "metadata": {}})
    invalid = replace(pair[1], steps=(ScriptedStep(0, (nameless,), "f.yaml", "node"),))
    with pytest.raises(InputError):
        runs.outcome_of(replace(invalid, steps_begin=0), "", NoProgress())


def test_a_log_has_the_commands_although_the_start_could_be_kept(pair, keeps_small):
    log, plain = [], []
    runs = run_pair(*pair, NoProgress(), log.append, keeps_start=True)
    run_pair(*pair, NoProgress(), plain.append)
    assert runs.started is None
    assert log == plain
    assert log


def test_the_start_of_a_small_cluster_is_not_kept(pair):
    assert run_pair(*pair, NoProgress(), keeps_start=True).started is None
