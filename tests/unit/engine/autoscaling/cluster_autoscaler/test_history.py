"""The reasons that the history keeps for explanations to users."""

from types import SimpleNamespace

from fairlead.engine.autoscaling.cluster_autoscaler.history import (
    AutoscalerHistory,
    UnhealthyPeriod,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import UnremovableReason


def loop(at=0):
    scale_down = SimpleNamespace(deleting=(), candidates=[])
    return SimpleNamespace(at=at, scale_ups=(), unschedulable=None, scale_down=scale_down)


LOOP = loop()


def autoscaler(unready=0, **reasons):
    """An autoscaler of ten nodes that stops if more than four of them are unready."""
    found = {name: SimpleNamespace(reason=why, blocking=None) for name, why in reasons.items()}
    registry = SimpleNamespace(
        is_cluster_healthy=lambda: unready <= 4,
        total=SimpleNamespace(unready=range(unready), registered=range(10)),
    )
    return SimpleNamespace(
        planner=SimpleNamespace(unremovable=SimpleNamespace(reasons=found)),
        context=SimpleNamespace(registry=registry),
    )


def test_a_node_that_is_not_examined_again_keeps_the_reason_of_its_examination():
    history = AutoscalerHistory(SimpleNamespace())
    history.loop_done(LOOP, autoscaler(a=UnremovableReason.NO_PLACE_TO_MOVE_PODS))
    again = UnremovableReason.RECENTLY_UNREMOVABLE
    history.loop_done(LOOP, autoscaler(a=again, b=again))
    assert history.staying == {"a": "NoPlaceToMovePods", "b": "RecentlyUnremovable"}
    history.loop_done(LOOP, autoscaler(a=UnremovableReason.NOT_UNDERUTILIZED))
    assert history.staying == {"a": "NotUnderutilized"}


def test_a_period_without_actions_has_the_highest_number_of_unready_nodes():
    history = AutoscalerHistory(SimpleNamespace())
    for at, unready in enumerate((4, 5, 7, 6, 3, 0, 8)):
        history.loop_done(loop(at), autoscaler(unready))
    first, second = UnhealthyPeriod(1, 7, 10, until=4), UnhealthyPeriod(6, 8, 10)
    assert history.unhealthy == [first, second]
    assert history.unhealthy_now == second
