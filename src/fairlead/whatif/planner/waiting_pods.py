"""Places the waiting pods of a snapshot, as the scheduler would before any new pod arrives.

`place_waiting_pods` places the pods that the Kubernetes scheduler can start now.
`place_waiting_gangs` then places pods of the other gangs as far as they fit, so that no other pod
takes their room. These are gangs of the batch scheduler, and gangs of which too few pods fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct

from fairlead.api.objects import PodGroup
from fairlead.api.pods.facts import controller_of
from fairlead.api.text.count import counted
from fairlead.engine.plugins.gang_scheduling import gang_minimum
from fairlead.engine.scheduling.decision import Decision, Placement
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel


class WaitingPodCounts(Struct):
    """Counts of the waiting pods of a snapshot: `placed` pods, and pods still `without_node`.

    If the cluster was changed first, the waiting pods can include new pods of the change.

    `preempted` is the number of running pods that were preempted. `lost` is the number of preempted
    pods that have no node at the end.
    """

    placed: int = 0
    without_node: int = 0
    preempted: int = 0
    lost: int = 0

    @property
    def words(self) -> str:
        """Sentences with the counts; "" if no pod waited."""
        if not (self.placed or self.without_node):
            return ""
        if self.placed:
            text = f"{counted(self.placed, 'pending pod')} got a node first"
            text += f"; {self.without_node:,} found none" if self.without_node else ""
        else:
            text = f"{counted(self.without_node, 'pending pod')} found no node"
        preempted = f" {preemption_words(self.preempted, self.lost)}" if self.preempted else ""
        return f"{text}.{preempted}"

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for plans if pods were preempted; () otherwise."""
        return (self.words,) if self.preempted else ()


def place_waiting_pods(model: ClusterModel) -> WaitingPodCounts:
    """Place the waiting pods, and the replacements of the pods that they preempt.

    Pods are placed in descending order of priority, by preemption if necessary. All waiting pods of
    a gang are placed together, when the first of them has its turn. If too few pods of the gang
    fit, no pod of the gang is placed.
    """
    counts = WaitingPodCounts()
    waiting = model.waiting_pods()
    waited = {pod.id for pod in waiting}  # also their replacements
    # A heap of (-priority, running number, pod).
    queue = [(-pod.priority, number, pod) for number, pod in enumerate(waiting)]
    numbers = count(len(queue))
    counts.without_node = len(waiting)
    gangs: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in waiting:
        if (gang := model.gang_of(pod)) is not None:
            gangs[gang.key].append(pod)
    while queue:
        _, number, pod = heappop(queue)
        victims: list[PodInfo] = []
        gang = model.gang_of(pod) if number < len(waiting) else None
        members = [pod] if gang is None else gangs.pop(gang.key, [])
        with model.preempting():
            placed = _place_together(model, members, gang, victims)
        if pod.id in waited:
            counts.placed += placed
            counts.without_node -= placed
        else:
            counts.lost -= placed
        for victim in victims:
            has_waited = victim.id in waited
            counts.placed -= has_waited
            counts.without_node += has_waited
            counts.preempted += not has_waited
            counts.lost += not has_waited
            if controller_of(victim.pod.metadata) is not None:
                replacement = model.replacement(victim)
                waited.update([replacement.id] if has_waited else ())
                heappush(queue, (-victim.priority, next(numbers), replacement))
    return counts


class WaitingGang(Struct, frozen=True):
    """The number of `waiting` pods of a workload's gang, and the keys of the pods that fit now."""

    workload: str
    waiting: int
    fitting: tuple[str, ...]


def place_waiting_gangs(model: ClusterModel) -> list[WaitingGang]:
    """Place the waiting members of gangs in the model as far as they fit, without preemption.

    The function places members of the batch scheduler's gangs, and of the gangs for which
    `place_waiting_pods` found too little room. Gangs that fit as a whole come before the others.
    Return the gangs of which at least one waiting member fits.
    """
    gangs: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in model.waiting_pods(with_batch=True):
        if model.is_batch(pod) or model.gang_of(pod) is not None:
            gangs[str(workload_of(pod.pod))].append(pod)
    fitting: dict[str, list[str]] = {}
    for workload, pods in gangs.items():
        with model.hypothesis() as trial:
            if all(isinstance(model.schedule(pod), Placement) for pod in pods):
                fitting[workload] = [pod.key for pod in pods]
                trial.commit()
    for workload, pods in gangs.items():
        if workload not in fitting:
            placed = (pod for pod in pods if isinstance(model.schedule(pod), Placement))
            fitting[workload] = [pod.key for pod in placed]
    return [
        WaitingGang(workload, len(pods), tuple(fitting[workload]))
        for workload, pods in gangs.items()
        if fitting[workload]
    ]


def _place_together(
    model: ClusterModel, pods: Sequence[PodInfo], gang: PodGroup | None, victims: list[PodInfo]
) -> int:
    """Place `pods`, all waiting pods of `gang`; return the number of pods that got a node.

    If too few pods of the gang fit, the model does not change, and the result is 0. If `gang` is
    None, each pod is placed independently of the other pods. Preempted pods are added to `victims`.
    """
    if gang is None:
        return sum(isinstance(place(model, pod, victims), Placement) for pod in pods)
    removed: list[PodInfo] = []
    with model.hypothesis() as trial:
        placed = sum(isinstance(place(model, pod, removed), Placement) for pod in pods)
        # A member can preempt a running member of lower priority, which then no longer counts.
        if model.cluster.pod_groups.scheduled_count(gang.key) < gang_minimum(gang):
            return 0
        trial.commit()
    victims += removed
    return placed


def preemption_words(preempted: int, lost: int) -> str:
    """Return a sentence about `preempted` preempted pods, of which `lost` find no other node."""
    if preempted == 1:
        text = "1 pod of lower priority is preempted"
        return f"{text} and finds no other node." if lost else f"{text}."
    text = f"{preempted:,} pods of lower priority are preempted"
    if lost:
        text += f", and {lost:,} of these {'finds' if lost == 1 else 'find'} no other node"
    return f"{text}."


def place(model: ClusterModel, pod: PodInfo, victims: list[PodInfo]) -> Decision:
    """Place `pod`, by preemption if `model` allows it; return the placement, or the failure.

    Preempted pods are added to `victims`. After each preemption, this function tries to place the
    pod again. The attempts end, because each preemption removes at least one pod.
    """
    while True:
        decision = model.schedule(pod)
        if isinstance(decision, Placement):
            return decision
        removed = model.make_room(decision)
        if not removed:
            return decision
        victims += removed
