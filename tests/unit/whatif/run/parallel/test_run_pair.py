"""Two runs from one loaded state have the same results as two separate runs."""

from __future__ import annotations

import gc
import threading

import pytest
from msgspec.structs import replace

from fairlead.engine.core.command import ObjectRef, PatchObject
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.run.experiment import Experiment
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
    _, after = run_pair(without, changed, NoProgress())
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
    assert outcomes[0][0].pods != outcomes[0][1].pods


def test_a_pod_that_neither_run_changes_exists_once(pair, monkeypatch):
    # An earlier test may have left a thread; then the runs do not share objects.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    before, after = run_pair(*pair, NoProgress())
    assert before.pods["default/idle"] is after.pods["default/idle"]
