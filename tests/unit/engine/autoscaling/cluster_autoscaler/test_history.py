"""The reasons that the history keeps for explanations to users."""

from types import SimpleNamespace

from fairlead.engine.autoscaling.cluster_autoscaler.history import AutoscalerHistory
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import UnremovableReason

LOOP = SimpleNamespace(
    at=0, scale_ups=(), unschedulable=None, scale_down=SimpleNamespace(deleting=(), candidates=[])
)


def autoscaler(**reasons):
    found = {name: SimpleNamespace(reason=why, blocking=None) for name, why in reasons.items()}
    return SimpleNamespace(planner=SimpleNamespace(unremovable=SimpleNamespace(reasons=found)))


def test_a_node_that_is_not_examined_again_keeps_the_reason_of_its_examination():
    history = AutoscalerHistory(SimpleNamespace())
    history.loop_done(LOOP, autoscaler(a=UnremovableReason.NO_PLACE_TO_MOVE_PODS))
    again = UnremovableReason.RECENTLY_UNREMOVABLE
    history.loop_done(LOOP, autoscaler(a=again, b=again))
    assert history.staying == {"a": "NoPlaceToMovePods", "b": "RecentlyUnremovable"}
    history.loop_done(LOOP, autoscaler(a=UnremovableReason.NOT_UNDERUTILIZED))
    assert history.staying == {"a": "NotUnderutilized"}
