"""OutageEnding: from what was recorded about quiet nodes to what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairlead.engine.core.instant import Instant
from fairlead.whatif.belief import Believing
from fairlead.whatif.outage_loss import Loss
from fairlead.whatif.outage_outcome import NodeStory, OutageOutcome, PodState, RoomMade
from fairlead.whatif.outage_recorder import OutageRecorder, Trouble
from fairlead.whatif.outcome import PdbBreach, PodEnd, Preempted


def outage_outcome(
    recorder: OutageRecorder,
    start: Instant,
    ends: Mapping[str, PodEnd],
    preempted: Sequence[Preempted],
    breaches: Sequence[PdbBreach],
) -> OutageOutcome | None:
    """What came of the nodes that were out of service; None where none was.

    `ends` are the pods there are at the end, by their original's key.
    """
    if not recorder.troubles:
        return None
    hits = recorder.hits.values()
    back = [hit for hit in hits if hit.state is PodState.UP]
    evictions = sorted(at for one in recorder.troubles.values() for at in one.evictions)
    outcome = OutageOutcome(
        concerned=len(recorder.hits),
        evicted=sum(hit.evicted_at is not None for hit in hits),
        first_eviction_at=evictions[0] if evictions else None,
        last_eviction_at=evictions[-1] if evictions else None,
        first_back_at=recorder.first_back_at,
        last_back_at=recorder.last_back_at,
        replaced=sum(hit.is_replaced for hit in back),
        back_with_node=sum(not hit.is_replaced for hit in back),
        nodes=tuple(_stories(recorder)),
        lost=tuple(Loss(recorder, ends, start).all()),
        preempted=tuple(_room_made(recorder, preempted)),
        turns=tuple(recorder.turns),
        zones=tuple(recorder.zones),
        node_samples=tuple(recorder.node_samples),
        pod_samples=tuple(recorder.pod_samples),
    )
    beliefs = Believing(outcome, recorder.config, breaches, start).all()
    return replace(outcome, beliefs=tuple(beliefs))


def _room_made(recorder: OutageRecorder, preempted: Iterable[Preempted]) -> Iterator[RoomMade]:
    for one in preempted:
        if one.by in recorder.hits:
            pod, priority = one.pod.key, one.pod.priority
            yield RoomMade(at=one.at, pod=pod, priority=priority, node=one.node, by=one.by)


def _stories(recorder: OutageRecorder) -> list[NodeStory]:
    troubles = recorder.troubles
    names = sorted(troubles, key=lambda name: (troubles[name].quiet_at, name))
    return [_story(name, recorder.zone(name), troubles[name]) for name in names]


def _story(name: str, zone: str, trouble: Trouble) -> NodeStory:
    return NodeStory(
        node=name,
        zone=zone,
        quiet_at=trouble.quiet_at,
        unready_at=trouble.unready_at,
        tainted_at=trouble.tainted_at,
        first_eviction_at=trouble.evictions[0] if trouble.evictions else None,
        last_eviction_at=trouble.evictions[-1] if trouble.evictions else None,
        back_at=trouble.back_at,
        pods=len(trouble.pods),
        evicted=len(trouble.evictions),
    )
