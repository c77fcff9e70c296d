"""unplaced_blockers: the pods that keep a node from being emptied, with changes that help.

`DrainPlanner.empty` stops at the first pod that fits no other node. This module places all pods of
the node. Each workload with a pod that fits no node becomes a blocker. A change is proposed only
after a trial that empties the whole node with this change:

    1  search     Place the pods of the workload. For the first of them that fits no node, find the
                  smallest change that makes another node take it (`find_remedy`).
    2  trial      Place all pods of the node, with this change for the pods of the workload. The
                  change helps if every pod fits, except pods of other blockers.
    3  next       If a pod of the workload fits no node in the trial, search for a change for this
                  pod. Example: a maxSkew of 3 is enough for one of two pods. This step finds a
                  maxSkew of 4. After that, other kinds of changes are tried.

If several workloads block the node, the change for one workload is tried while the pods of the
others may have no place. So all changes that were found are tried together in the end. If this
trial fails, for example because two workloads need the same room, several new nodes are tried. If
the new nodes are not enough either, no change is proposed. In the trials of all changes, every pod
must have a place, except the pods of workloads for which no change was found.

A node that was cordoned before the drain is still cordoned when it returns to service. For such a
node, `kubectl uncordon` is the first change that is tried. One more node like the drained node is
proposed in two cases: no change of a single object helps, or all pods of all blockers fit with this
node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, Pod, PodSpec
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.requests import pod_requests
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.remedy.change import Remedy
from fairlead.engine.scheduling.remedy.proposals import uncordoned
from fairlead.engine.scheduling.remedy.search import find_remedy
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.node.node_copy import copy_node
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.planner.node_drain.drain_planner import (
    UNPLACED,
    Blocker,
    DrainPlanner,
    PodMove,
    Unplaced,
    blocker_of,
)
from fairlead.whatif.planner.refusal import within_limit_ranges
from fairlead.whatif.planner.waiting_pods import place_waiting_pods

# maximum number of nodes for which a remedy is searched; each search takes milliseconds
_NODES_MAX: Final = 12
# maximum number of trials for a blocker; each trial places all pods of the node
_TRIALS_MAX: Final = 8
_NO_CHANGES: Final[Mapping[str, _Candidate]] = {}
_PREEMPTS: Final = "it would preempt pods of lower priority"
_SEARCHED_MAX: Final = 4  # maximum number of blockers of a node for which a change is searched


class _Candidate(Struct, frozen=True):
    """A change to try: `remedy` makes a node take a pod; `before` is the unchanged pod."""

    remedy: Remedy
    before: Pod

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the remedy changes, as they are afterwards."""
        return [change.node for change in self.remedy.changes if change.node is not None]

    def edit(self, pod: PodInfo) -> Pod:
        """Return `pod` with the changes that the remedy makes to `before`.

        `pod` and `before` belong to the same workload.
        """
        changed = next(
            (one.pod for one in reversed(self.remedy.changes) if one.pod is not None), None
        )
        if changed is None:
            return pod.pod
        old, new = self.before.spec, changed.spec
        fields = {
            name: getattr(new, name)
            for name in PodSpec.__struct_fields__
            if getattr(new, name) != getattr(old, name)
        }
        return replace(pod.pod, spec=replace(pod.pod.spec, **fields))


class _Choice(Struct, frozen=True):
    """A change to propose: its `text`, and the `candidate`; None for a new node."""

    text: str
    candidate: _Candidate | None = None


class _Trials:
    """Tries to empty `node` with various changes of the cluster or of the pods.

    Apart from these trials, the model must not change while this object is in use.
    If `returns` is set, pods that fit no other node wait until the node returns to service.
    """

    def __init__(self, planner: DrainPlanner, node: str, *, returns: bool) -> None:
        self.planner = planner
        self.node = node
        self.returns = returns
        self._drained_node = planner.model.node(node).node
        self._pods = planner.moving(node)
        # by the workload placed first
        self._stuck_with_new_node: dict[str, frozenset[str]] = {}

    @contextmanager
    def emptied(
        self,
        workload: str,
        *,
        is_first: bool,
        candidates: Mapping[str, _Candidate] = _NO_CHANGES,
        new_nodes: int = 0,
        uncordons: bool = False,
    ) -> Iterator[tuple[list[PodMove], list[Unplaced]]]:
        """Empty `self.node`; yield the moves and the pods without a place.

        The model is restored when the `with` block ends. `candidates` are the changes to try, by
        workload. Each candidate changes the pods of its workload, or another node. The pods of
        `workload` are placed first if `is_first` is set, otherwise last. `new_nodes` is the number
        of copies of `self.node` that are added. If there are new nodes or changes, the pods that
        wait in the snapshot are placed before all pods of `self.node`. If `uncordons` is set,
        `self.node` is no longer cordoned when it returns to service.
        """
        planner, model, node = self.planner, self.planner.model, self.node
        edit: Callable[[PodInfo], PodInfo] | None = None
        with model.hypothesis():
            planner.clear(node, self._pods)
            for _ in range(new_nodes):
                copy_node(model, model.node(node), f"{node}-copy").add_to(model)
            for candidate in candidates.values():
                for changed in candidate.nodes:
                    model.put_node(changed)
            if candidates:
                edit = self._edit_of(candidates)
            if new_nodes or candidates:
                place_waiting_pods(model)
            own = planner.replaced(self._pods)
            own.sort(key=lambda pod: (str(workload_of(pod.pod)) == workload) != is_first)
            moves, stuck = planner.place(node, own, edit)
            if self.returns:
                back = self._drained_node
                model.put_node(uncordoned(back) if uncordons else back)
                late, stuck = planner.place(node, [one.pod for one in stuck], edit)
                moves += late
            yield moves, stuck

    def fits_if_uncordoned(self, workload: str) -> bool:
        """Return whether every pod of `node` fits if the node returns and is uncordoned.

        The pods of `workload` are placed last. Return False if the node does not return, or if it
        was not cordoned before.
        """
        if not (self.returns and self._drained_node.spec.unschedulable):
            return False
        with self.emptied(workload, is_first=False, uncordons=True) as (_, stuck):
            return not stuck

    def stuck_with_new_node(self, workload: str) -> frozenset[str]:
        """Return the workloads with pods that fit no node even if a node like `node` is added.

        The pods of `workload` are placed first.
        """
        found = self._stuck_with_new_node.get(workload)
        if found is None:
            with self.emptied(workload, is_first=True, new_nodes=1) as (_, stuck):
                found = frozenset(one.workload for one in stuck)
            self._stuck_with_new_node[workload] = found
        return found

    def is_enough(
        self,
        workload: str,
        candidates: Mapping[str, _Candidate],
        new_nodes: int,
        others: AbstractSet[str],
    ) -> bool:
        """Return whether the pods fit after the changes `candidates`, with `new_nodes` more nodes.

        Pods of workloads in `others` need not fit. The result is True if the pods fit in one of two
        orders: the pods of `workload` are placed first or last.
        """
        for is_first in (True, False):
            found = self.emptied(
                workload, is_first=is_first, candidates=candidates, new_nodes=new_nodes
            )
            with found as (_, stuck):
                if {one.workload for one in stuck} <= others:
                    return True
        return False

    def _edit_of(self, candidates: Mapping[str, _Candidate]) -> Callable[[PodInfo], PodInfo]:
        def edit(pod: PodInfo) -> PodInfo:
            candidate = candidates.get(str(workload_of(pod.pod)))
            return pod if candidate is None else self.planner.model.pod_info(candidate.edit(pod))

        return edit

    def candidates(self, pod: PodInfo) -> list[_Candidate]:
        """Return the changes that would let another node take `pod` now, the smallest first.

        Changes that delete pods, or that no administrator would make (`_is_plausible`), are left
        out. So are changes of the pods of a Job, because the Job's template is immutable.

        upstream: pkg/apis/batch/validation/validation.go: ValidateJobSpecUpdate
        """
        model = self.planner.model
        built, selector = model.profile_of(pod), model.runtime_class_selector(pod.pod)
        admits = within_limit_ranges(model, pod.pod)
        diagnosis = find_nodes_that_fit(built.plans, pod).diagnosis()
        owner = controller_of(pod.pod.metadata)
        is_mutable = owner is None or owner.kind != JOB.kind
        found: dict[str, _Candidate] = {}
        others = [one for one in model.table.nodes() if _may_help(one, self.node)]
        for one in others[:_NODES_MAX]:
            status = diagnosis.status_of(one.row)
            remedy = find_remedy(
                built.framework, pod, one, status,
                keeps=None, kept_selector=selector, admits=admits,
            )  # fmt: skip
            if remedy is None or not _is_plausible(remedy, pod.pod, one.node):
                continue
            if is_mutable or not _changes_pod(remedy):
                found.setdefault(remedy.what, _Candidate(remedy, pod.pod))
        return [
            found[what]
            for _, what in sorted((len(one.remedy.changes), what) for what, one in found.items())
        ]


def unplaced_blockers(
    planner: DrainPlanner,
    found: Blocker,
    *,
    new_nodes: bool = True,
    returns: bool = False,
) -> list[Blocker]:
    """Return a blocker for each workload whose pods on the node do not all fit other nodes.

    `found` is the blocker from `DrainPlanner.empty` for the node. If the cause of `found` is not in
    UNPLACED, or if no workload has a blocker, the result is [`found`]. If the result has a blocker
    of the workload `found.owner`, this blocker comes first. The `edit` of a blocker is a change
    that would help; `edit` is "" if no such change was found. Changes that add a node are proposed
    only if `new_nodes` is set. If `returns` is set, the node returns to service, and the pods that
    fit on the returned node cause no blocker. The model does not change.
    """
    if found.cause not in UNPLACED:
        return [found]
    trials = _Trials(planner, found.node, returns=returns)
    with trials.emptied(found.owner, is_first=False) as (_, stuck):
        first: dict[str, Unplaced] = {}
        for one in stuck:
            first.setdefault(one.workload, one)
    owners = sorted(first, key=lambda owner: owner != found.owner)
    if first and trials.fits_if_uncordoned(found.owner):
        edit = f"uncordon {found.node} when it is back, because it was cordoned before"
        return [
            replace(
                found if owner == found.owner else blocker_of(found.node, one, is_first=False),
                edit=edit,
            )
            for owner, one in sorted(first.items(), key=lambda item: item[0] != found.owner)
        ]
    shared = new_nodes and len(owners) > 1 and not trials.stuck_with_new_node(found.owner)
    known = {found.owner: found} if found.owner in first or not returns else {}
    blockers: dict[str, Blocker] = {}
    candidates: dict[str, list[_Candidate]] = {}
    for owner in owners[:_SEARCHED_MAX]:
        blocker, changes = _examined(trials, owner, known.get(owner), searches=not shared)
        if blocker is not None:
            blockers[owner], candidates[owner] = blocker, changes
    for owner in owners[_SEARCHED_MAX:]:
        blockers[owner] = blocker_of(found.node, first[owner], is_first=False)
    if shared:
        edit = new_node_edit(found.node)
        return [replace(blocker, edit=edit) for blocker in blockers.values()]
    for owner, choice in _choices(trials, blockers, candidates, new_nodes=new_nodes).items():
        blockers[owner] = replace(blockers[owner], edit=choice.text)
    return list(blockers.values()) or [found]


def with_preemption(planner: DrainPlanner, found: Blocker) -> Blocker:
    """Return `found`; its reason also says whether a pod of the workload can preempt pods.

    `found` is the blocker from `DrainPlanner.empty`. The model does not change.
    """
    if found.cause not in UNPLACED:
        return found
    trials = _Trials(planner, found.node, returns=False)
    for is_first in (True, False):
        with trials.emptied(found.owner, is_first=is_first) as (_, stuck):
            for one in stuck:
                if one.workload == found.owner:
                    return _with_preemption(planner, found, one)
    return found


def _choices(
    trials: _Trials,
    blockers: Mapping[str, Blocker],
    candidates: Mapping[str, Sequence[_Candidate]],
    *,
    new_nodes: bool,
) -> dict[str, _Choice]:
    """Return the changes to propose, by workload; workloads that have none are left out."""
    chosen: dict[str, _Choice] = {}
    for owner, changes in candidates.items():
        others = blockers.keys() - {owner}
        choice = _change(trials, blockers[owner], changes, others, new_nodes=new_nodes)
        if choice is not None:
            chosen[owner] = choice
    if len(chosen) > 1:
        others = blockers.keys() - chosen.keys()
        return _enough_together(trials, chosen, others, new_nodes=new_nodes)
    return chosen


def _enough_together(
    trials: _Trials,
    chosen: Mapping[str, _Choice],
    others: AbstractSet[str],
    *,
    new_nodes: bool,
) -> dict[str, _Choice]:
    """Return the changes `chosen`, by workload, if all pods fit when all these changes are made.

    The workloads in `others` have no change, and their pods need not fit. If two of the changes are
    in conflict (`_are_in_conflict`), they cannot be tried together, and the result is `chosen`.

    If the pods do not fit, new nodes are tried instead of the changes. The change for every
    workload is then the smallest number of new nodes with which the pods fit. New nodes are tried
    only if `new_nodes` is set. Their number is at most the number of workloads in `chosen`. Return
    {} if the new nodes are not enough, or are not tried.
    """
    candidates = {
        owner: one.candidate for owner, one in chosen.items() if one.candidate is not None
    }
    added, first = len(candidates) < len(chosen), next(iter(chosen))
    if _are_in_conflict(candidates.values()):
        return dict(chosen)
    if trials.is_enough(first, candidates, int(added), others):
        return dict(chosen)
    # If no workload has a candidate, the trial above had one new node and no other change.
    least, most = 1 if candidates else 2, len(chosen)
    for count in range(least, most + 1) if new_nodes else ():
        if trials.is_enough(first, _NO_CHANGES, count, others):
            return dict.fromkeys(chosen, _Choice(new_node_edit(trials.node, count)))
    return {}


def _are_in_conflict(candidates: Iterable[_Candidate]) -> bool:
    """Return whether two of `candidates` change a node in different ways.

    Such changes cannot be tried together. Equal changes of a node are one change.
    """
    nodes: dict[str, Node] = {}
    changed = (node for one in candidates for node in one.nodes)
    return any(nodes.setdefault(node.metadata.name, node) != node for node in changed)


def _examined(
    trials: _Trials, owner: str, known: Blocker | None, *, searches: bool
) -> tuple[Blocker | None, list[_Candidate]]:
    """Return (blocker of the workload `owner` or None, changes to try).

    `known` is the blocker that `empty` found for this workload, None if there is none. The node is
    emptied twice: the workload's pods are placed before all other pods, then after them. If all
    pods of the workload fit both times, the result is (`known`, []). The result has changes only if
    `searches` is set.
    """
    for is_first in (True, False):
        with trials.emptied(owner, is_first=is_first) as (_, stuck):
            one = next((one for one in stuck if one.workload == owner), None)
            if one is None:
                continue
            blocker = known or blocker_of(trials.node, one, is_first=is_first)
            blocker = _with_preemption(trials.planner, blocker, one)
            return blocker, trials.candidates(one.replacement) if searches else []
    return known, []


def _with_preemption(planner: DrainPlanner, blocker: Blocker, unplaced: Unplaced) -> Blocker:
    """Return `blocker`; its reason also says whether the pod of `unplaced` can preempt pods.

    A victim is not replaced if it has no controller, or if its Job would fail. The reason then says
    that no controller replaces the victim, even if the victim has a negative priority. Users must
    decide about such victims, as with `kubectl drain`, which needs --force for pods without a
    controller.
    """
    found = planner.room_by_preemption(unplaced.replacement)
    if found is None:
        return blocker
    failing = planner.jobs.not_replaced([victim.pod for victim in found.victims])
    alone = (victim for victim in found.victims if controller_of(victim.pod.metadata) is None)
    lost = len(failing) + sum(1 for _ in alone)
    which = " that no controller replaces" if lost == len(found.victims) else ""
    if 0 < lost < len(found.victims):
        which = ", and no controller replaces some of them"
    return replace(blocker, why=f"{blocker.why}; {_PREEMPTS}{which}", preempts=True)


def _change(
    trials: _Trials,
    blocker: Blocker,
    candidates: Sequence[_Candidate],
    others: AbstractSet[str],
    *,
    new_nodes: bool,
) -> _Choice | None:
    """Return the smallest change that lets every pod fit, except pods of workloads in `others`.

    Return None if no such change was found.
    """
    single = [one for one in candidates if len(one.remedy.changes) == 1]
    found = _proven(trials, blocker, single, others)
    if found is not None:
        return found
    if new_nodes and trials.stuck_with_new_node(blocker.owner) <= others:
        return _Choice(new_node_edit(blocker.node))
    several = [one for one in candidates if len(one.remedy.changes) > 1]
    return _proven(trials, blocker, several, others)


def _proven(
    trials: _Trials, blocker: Blocker, candidates: Sequence[_Candidate], others: AbstractSet[str]
) -> _Choice | None:
    """Return the first of `candidates` that passes a trial; None if none passes.

    `blocker.owner` is a workload with pods that fit no node. `others` are the other workloads on
    the drained node that have such pods. A trial makes a candidate's changes, and places the pods
    of the drained node on other nodes. The trial passes if all pods without a place belong to
    workloads in `others`. If a pod of `blocker.owner` has no place, changes that let this pod fit
    are tried next.
    """
    owner, waiting, tried = blocker.owner, list(candidates), set[str]()
    while waiting and len(tried) < _TRIALS_MAX:
        candidate = waiting.pop(0)
        if candidate.remedy.what in tried:
            continue
        tried.add(candidate.remedy.what)
        for is_first in (True, False):
            tried_now = trials.emptied(owner, is_first=is_first, candidates={owner: candidate})
            with tried_now as (moves, stuck):
                left = {one.workload for one in stuck}
                if left <= others:
                    own = [move for move in moves if move.workload == owner]
                    return _Choice(_text(candidate.remedy, owner, own), candidate)
                if owner in left:
                    pod = next(one.pod for one in stuck if one.workload == owner)
                    larger = trials.candidates(trials.planner.model.replacement(pod))
                    size = len(candidate.remedy.changes)
                    waiting[:0] = [one for one in larger if len(one.remedy.changes) <= size]
                    break  # a trial in the other order would also fail
    return None


def new_node_edit(node: str, count: int = 1) -> str:
    """Return the text of a change that adds `count` nodes like `node`."""
    return f"add {'a node' if count == 1 else f'{count:,} nodes'} like {node}"


def _may_help(info: NodeInfo, node: str) -> bool:
    """Return whether `info` is a node other than `node` on which new pods would start."""
    return info.name != node and not info.node.spec.unschedulable and takes_pods(info.node)


def _is_plausible(remedy: Remedy, pod: Pod, node: Node) -> bool:
    """Return whether an administrator might make the changes of `remedy` to `pod` and `node`.

    A remedy is not plausible if it reduces a request to less than half, or changes the value of a
    label that the node has. Such a label states what the node is.
    """
    for change in remedy.changes:
        if change.pod is not None:
            lowered = pod_requests(change.pod)
            if any(2 * lowered.get(name, 0) < asked for name, asked in pod_requests(pod).items()):
                return False
        if change.node is not None:
            labels = change.node.metadata.labels
            if any(labels.get(key, old) != old for key, old in node.metadata.labels.items()):
                return False
    return True


def _changes_pod(remedy: Remedy) -> bool:
    return any(change.pod is not None for change in remedy.changes)


def _text(remedy: Remedy, owner: str, moves: Sequence[PodMove]) -> str:
    """Return the text of `remedy`, which lets the pods of `owner` make `moves`.

    If the remedy changes the pods, the text begins with `owner`. Example: `deploy/a/b: lower the
    cpu request from 3 to 2 (then worker-0 takes one of its pods)`.
    """
    targets = list(dict.fromkeys(move.target for move in moves))
    is_pod, count = owner.startswith("pod/"), len(moves)
    names = " and ".join(targets) if len(targets) == 2 else listed(targets)
    then = f"then {names} {'takes' if len(targets) == 1 else 'take'}"
    if _changes_pod(remedy):
        what = "it" if is_pod else f"{'one' if count == 1 else f'{count:,}'} of its pods"
        return f"{owner}: {remedy.what} ({then} {what})"
    what = owner if is_pod else f"{'a pod' if count == 1 else f'{count:,} pods'} of {owner}"
    return f"{remedy.what} ({then} {what})"
