"""WorkloadRecorder: how long a workload has too few ready pods."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.run.recorders.workload_recorder import PodTransition, Step, WorkloadRecorder

WEB = WorkloadRef("Deployment", "ns", "web")


@pytest.mark.parametrize(
    ("settled", "steps", "lowest_for_s"),
    [
        (False, [(10, "unready"), (11, "ready"), (60, "unready")], 1),
        (True, [(10, "unready"), (11, "ready"), (60, "unready")], None),
        (False, [(10, "unready"), (11, "ready"), (50, "unready")], None),
        (False, [(60, "unready")], None),
    ],
    ids=[
        "it falls once more in the instant in which an unsettled run ends: 1 s",
        "it falls in the last instant, and nothing would change afterwards: to the end",
        "it falls before the end and stays low: to the end",
        "it falls only in the last instant: to the end",
    ],
)
def test_the_time_without_ready_pods_is_recorded(settled, steps, lowest_for_s):
    transitions = [PodTransition(seconds(at), WEB, "", Step(step)) for at, step in steps]
    recorder = WorkloadRecorder(transitions=transitions)
    found = dict(recorder.readiness([], {WEB: 1}, 0, seconds(60), settled=settled))[WEB]
    assert (found.lowest, found.at_end) == (0, 0)
    assert found.lowest_for == (None if lowest_for_s is None else seconds(lowest_for_s))
