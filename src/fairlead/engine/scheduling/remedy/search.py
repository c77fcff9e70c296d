"""find_remedy: searches for the smallest change that makes a pod fit a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from fairlead.api.objects import Pod
from fairlead.api.well_known_label import ARCH, OS, STABLE
from fairlead.engine.core.status import Code, Status
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import restricted_by
from fairlead.engine.framework.interface import PreFilterResult
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.remedy.affinity import required_terms
from fairlead.engine.scheduling.remedy.change import Remedy, RemedyChange, deleting
from fairlead.engine.scheduling.remedy.proposals import NODE_AFFINITY, proposals, rejecting_plugin
from fairlead.engine.scheduling.remedy.selector_correction import SelectorCorrection
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

# Limits on the proposals per rejection, and on the changes in sequence.
_TRIED_MAX: Final = 256
_CHAIN_MAX: Final = 3
_LINUX: Final = "linux"  # the value of the label kubernetes.io/os


def find_remedy(  # noqa: PLR0913 - what a remedy depends on
    framework: Framework,
    pod: PodInfo,
    node: NodeInfo,
    status: Status,
    *,
    keeps: Callable[[PodInfo], bool] | None = lambda _: False,
    kept_selector: Mapping[str, str] = MappingProxyType({}),
    correction: SelectorCorrection | None = None,
    admits: Callable[[Pod], bool] = lambda _: True,
) -> Remedy | None:
    """Return changes that make `pod` fit `node`, which rejects it with `status`.

    The changes do not delete pods for which `keeps` returns True. If `keeps` is None, the changes
    delete no pods at all. Entries of `kept_selector` stay in the pod's nodeSelector. If the pod's
    node selector has typing errors, their `correction` is tried instead of changes of node labels.
    `admits` returns whether admission would admit a changed pod. Changes that admission rejects are
    not tried.

    The result is a single change if one change is enough. Returns None if the search finds no
    remedy. Also returns None if the pod requires a different operating system or architecture.
    """
    if not _could_run(pod.pod, node):
        return None
    search = _Search(framework, pod, node.name, keeps, kept_selector, correction, admits)
    chain: list[RemedyChange] = []
    rejection: Status | None = status
    while rejection is not None and len(chain) < _CHAIN_MAX:
        step = search.next_change(rejection, chain)
        if step is None:
            return None
        change, rejection = step
        chain.append(change)
    return Remedy(tuple(chain)) if rejection is None else None


class _Search(NamedTuple):
    """The search for changes that make `pod` fit the node `name`."""

    framework: Framework
    pod: PodInfo
    name: str
    keeps: Callable[[PodInfo], bool] | None
    kept_selector: Mapping[str, str]
    correction: SelectorCorrection | None
    admits: Callable[[Pod], bool]

    def next_change(
        self, status: Status, chain: list[RemedyChange]
    ) -> tuple[RemedyChange, Status | None] | None:
        """Return the next change to apply after the changes in `chain`, or None.

        `status` is the rejection of the pod after `chain`. If a change makes the pod fit, the
        result is (change, None). Otherwise, the result is (change, next rejection) for the first
        change that makes progress, or None if no change makes progress. A change makes progress if
        the next rejection and `status` come from different plugins. A change also makes progress if
        the deletion of pods cannot help against `status` (it is unresolvable), but may help against
        the next rejection.
        """
        progress: tuple[RemedyChange, Status | None] | None = None
        for change in self._proposals(status, chain):
            verdict = verdict_after(self.framework, self.pod, self.name, [*chain, change])
            if verdict is None:
                return change, None
            if progress is None and _is_progress(status, verdict):
                progress = change, verdict
        return progress

    def _proposals(self, status: Status, chain: list[RemedyChange]) -> list[RemedyChange]:
        """Return the changes to try after the changes in `chain` are applied."""
        cluster = self.framework.cluster
        with _with_changes(cluster, chain):
            node = cluster.table.find(self.name)
            if node is None:
                return []
            changed = _as_changed(cluster, self.pod, chain)
            if self.correction is not None and rejecting_plugin(status) == NODE_AFFINITY:
                return [self.correction.change_of(changed.pod)]
            deletes = self.keeps is not None
            found: Iterator[RemedyChange] = filter(
                self._is_allowed,
                proposals(self.framework, changed, node, status, deletes=deletes),
            )
            if self.keeps is not None:
                found = _without_deleting(self.keeps, found)
            return list(islice(found, _TRIED_MAX))

    def _is_allowed(self, change: RemedyChange) -> bool:
        """Return whether admission admits the changed pod, and leaves the change as it is."""
        if change.pod is None:
            return True
        kept = self.kept_selector.items() & self.pod.pod.spec.node_selector.items()
        return kept <= change.pod.spec.node_selector.items() and self.admits(change.pod)


def _could_run(pod: Pod, node: NodeInfo) -> bool:
    """Return whether `node` has an operating system and an architecture that `pod` requires.

    Pods that state no operating system require Linux; pods that state no architecture accept any.
    """
    arch = node.labels.get(ARCH)
    allowed = _stated(pod, ARCH)
    has_arch = arch is None or not allowed or arch in allowed
    return has_arch and node.labels.get(OS, _LINUX) in (_stated(pod, OS) or [_LINUX])


def _stated(pod: Pod, label: str) -> list[str]:
    """Return the values of the node label `label` that `pod` requires; [] if it requires none.

    Values that `pod` requires for the deprecated name of `label` are included.
    """
    selector = pod.spec.node_selector.items()
    stated = [value for key, value in selector if STABLE.get(key, key) == label]
    for term in required_terms(pod):
        for one in term.match_expressions:
            if one.operator == "In" and STABLE.get(one.key, one.key) == label:
                stated += one.values
    return stated


def _is_progress(before: Status, after: Status) -> bool:
    """Return whether the rejection `after` is closer to a placement than the rejection `before`.

    The rejection `after` is closer if it comes from a different plugin, or if only `after` could be
    overcome by deletions of other pods.
    """
    resolvable = after.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return after.plugin != before.plugin or (
        before.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE and resolvable
    )


def _without_deleting(
    keeps: Callable[[PodInfo], bool], changes: Iterator[RemedyChange]
) -> Iterator[RemedyChange]:
    """Yield `changes`, but no deletion of a pod for which `keeps` returns True."""
    for change in changes:
        others = [pod for pod in change.without if not keeps(pod)]
        if len(others) == len(change.without):
            yield change
        elif len(others) > 1:  # the deletion of a single pod is proposed separately
            yield deleting(others)


@contextmanager
def _with_changes(cluster: Cluster, changes: Sequence[RemedyChange]) -> Iterator[None]:
    """Apply changes of nodes and deletions of pods; the end of the `with` block reverts them."""
    undo: list[Stimulus] = []
    try:
        for change in changes:
            if change.node is not None:
                known = cluster.table.find(change.node.metadata.name)
                assert known is not None
                undo.append(ObjectChanged(known.node))
                cluster.apply(ObjectChanged(change.node))
            for other in change.without:
                undo.append(ObjectChanged(other.pod))
                cluster.apply(ObjectDeleted(other.pod))
        yield
    finally:
        for stimulus in reversed(undo):
            cluster.apply(stimulus)


def _as_changed(cluster: Cluster, pod: PodInfo, changes: Sequence[RemedyChange]) -> PodInfo:
    """Return `pod` as it is after `changes`.

    The result is the pod of the last change that sets `RemedyChange.pod`. If no change sets it, the
    result is `pod` itself.
    """
    for change in changes:
        if change.pod is not None:
            pod = PodInfo(change.pod, cluster.shapes.shape_of(change.pod))
    return pod


def verdict_after(
    framework: Framework, pod: PodInfo, node: str, changes: Sequence[RemedyChange]
) -> Status | None:
    """Return the status that rejects `pod` on `node` after `changes`; None if the pod fits."""
    with _with_changes(framework.cluster, changes):
        return _verdict(framework, _as_changed(framework.cluster, pod, changes), node)


def _verdict(framework: Framework, pod: PodInfo, name: str) -> Status | None:
    framework.cluster.table.widen()
    node = framework.cluster.table.find(name)
    assert node is not None
    state = CycleState()
    for plugin in framework.pre_filters:
        answer = framework.run_pre_filter(state, pod, plugin)
        if isinstance(answer, Status):
            return answer
        names = answer.node_names if isinstance(answer, PreFilterResult) else None
        if names is not None and name not in names:
            return restricted_by([plugin.name]).by(plugin.name)
    return framework.run_filters_with_nominated(state, pod, node)
