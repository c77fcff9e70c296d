"""The status column of pods that are not in the recordings."""

from __future__ import annotations

import pytest

from fairlead.apiserver.printers.pod import POD

NOW = 100_000_000_000


def pod(containers, *, init=(), sidecars=(), **status):
    """Return a pod with these container statuses by name."""
    return {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": name} for name in containers],
            "initContainers": [
                {"name": name, "restartPolicy": "Always"} if name in sidecars else {"name": name}
                for name in init
            ],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": n, **s} for n, s in containers.items()],
            "initContainerStatuses": [{"name": n, **s} for n, s in dict(init or {}).items()],
            **status,
        },
    }


RUNNING = {"state": {"running": {}}, "ready": True}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
KILLED = {"state": {"terminated": {"exitCode": 137, "signal": 9}}}
CRASHED = {
    "restartCount": 3,
    "ready": True,
    "state": {"running": {}},
    "lastState": {"terminated": {"finishedAt": "1970-01-01T00:00:40Z"}},
}


def cells(obj):
    return POD.cells(obj, NOW)[1:4]


def test_a_pod_with_a_finished_and_a_running_container_is_running_or_not_ready():
    both = {"a": DONE, "b": RUNNING}
    ready = [{"type": "Ready", "status": "True"}]
    assert cells(pod(both, conditions=ready)) == ["1/2", "Running", "0"]
    assert cells(pod(both)) == ["1/2", "NotReady", "0"]


def test_a_killed_container_shows_the_signal():
    assert cells(pod({"a": KILLED})) == ["0/1", "Signal:9", "0"]


def test_restarts_are_shown_with_the_age_of_the_last_restart():
    assert cells(pod({"a": CRASHED})) == ["1/1", "Running", "3 (60s ago)"]


def test_restarts_of_init_containers_count_until_the_pod_is_initialized():
    waiting = {"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    starting = pod({"a": {}}, init={"i": waiting})
    assert cells(starting) == ["0/1", "Init:CrashLoopBackOff", "2"]


@pytest.mark.parametrize(("started", "expected"), [(True, "2/2"), (False, "0/2")])
def test_a_sidecar_counts_once_it_has_started(started, expected):
    sidecar = {**RUNNING, "started": started}
    assert cells(pod({"a": RUNNING}, init={"s": sidecar}, sidecars=("s",)))[0] == expected
