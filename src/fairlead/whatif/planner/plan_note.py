"""Notes of a plan: rules that were not applied, and values added to the snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fairlead.api.text.count import counted
from fairlead.apiserver.kind import DEVICE_TAINT_RULE, POD_GROUP
from fairlead.engine.state.pod_groups import GROUP
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    NO_AUTOSCALING,
    OFF,
    AutoscaleOptions,
    is_of_karpenter,
)
from fairlead.whatif.configuration.other_scheduler import rules_note, unknown_schedulers
from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_release
from fairlead.whatif.planner.cluster_model import ClusterModel, ModelErrors
from fairlead.whatif.snapshot.dump_note import IGNORED_GROUPS, IGNORED_RULES, dump_notes
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.node_lifecycle.leaving_node import (
    leaving_nodes,
    leaving_note,
    nodes_to_be_deleted,
)
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.unsimulated_controller import LostPods, unsimulated_controllers

_NO_EXTENDERS: Final = "Extenders are not called, so their rules are missing here."
_SIMULATED_EXTENDERS: Final = (
    "Only the simulated drains call extenders; the rest of this answer, such as what blocks nodes "
    "and where pods go, ignores their rules."
)


def plan_notes(
    snapshot: Snapshot,
    model: ClusterModel,
    choice: ReleaseChoice,
    autoscale: AutoscaleOptions = NO_AUTOSCALING,
    *,
    places_gangs: bool = False,
    lost: LostPods | None = None,
) -> tuple[str, ...]:
    """Return the notes about a plan for `snapshot`, each a sentence.

    If `autoscale` selects an autoscaler, the plan is a simulation in which the autoscaler acts and
    extenders are called. `places_gangs` is set if the plan places the pods of the batch scheduler.
    `lost` are the pods that the plan may remove from their nodes; None if it may remove any pod.
    """
    release = read_release(choice)
    words = Releases(release, release).with_gates(model.gates).words
    rules = any(one.kind is DEVICE_TAINT_RULE for one in snapshot.manifests)
    groups = any(
        one.kind is POD_GROUP and str(one.value.get("apiVersion")).startswith(f"{GROUP}/")
        for one in snapshot.manifests
    )
    # Pods without a scheduler wait, so they follow no rules.
    missing = (pod for pod in model.pods() if not model.has_profile(pod))
    unprofiled = {pod.pod.spec.scheduler_name: pod for pod in missing}
    found = {name for name, pod in unprofiled.items() if not model.missing_scheduler(pod)}
    batch = set() if places_gangs else {n for n in found if model.is_batch(unprofiled[n])}
    others = found - batch
    unknown = unprofiled.keys() - found
    # A text shows only the first notes, so those about missing rules come first.
    return (
        *([words] if words else []),
        *([_NO_EXTENDERS] if model.has_extenders and autoscale.autoscale == OFF else []),
        *unreadable_notes(snapshot.unreadable),
        *unsimulated_controllers(snapshot.manifests, lost),
        *dump_notes(snapshot),
        *leaving_note(_leaving(snapshot, autoscale)),
        *([IGNORED_GROUPS] if groups and not model.has_pod_groups else []),
        *([IGNORED_RULES] if rules and not release.scheduler.device_taint_rules else []),
        *([rules_note(sorted(others))] if others else []),
        *unknown_schedulers(unknown),
        *_moved_pods(model, batch),
        *_recommended(model.recommended_workloads),
        *_waiting_groups(model, are_placed=places_gangs),
    )  # fmt: skip


def with_simulation(notes: Iterable[str]) -> Iterator[str]:
    """Yield `notes`, the notes about a plan whose drains have been simulated.

    The simulation calls extenders, so the note about extenders is replaced.
    """
    for note in notes:
        yield _SIMULATED_EXTENDERS if note == _NO_EXTENDERS else note


def error_notes(errors: ModelErrors) -> tuple[str, ...]:
    """Return the notes about `errors`, the errors of the placements of a finished plan."""
    ended = "The scheduling of a pod ended with an error, so the pod counts as a pod without a node"
    replaced = "A plugin failed, and a safe default replaced its result"
    return tuple(
        f"{effect}: {next(iter(messages))}{_further(len(messages) - 1)}."
        for effect, messages in ((ended, errors.cycles), (replaced, errors.ignored))
        if messages
    )


def _further(count: int) -> str:
    return f" ({counted(count, 'other error')})" if count else ""


def _recommended(workloads: int) -> Iterator[str]:
    """Yield a note if `workloads`, the number of workloads with requests from VPAs, is not 0."""
    if workloads:
        of = counted(workloads, "workload")
        yield f"New pods of {of} get the requests that their VerticalPodAutoscalers recommend."


def _leaving(snapshot: Snapshot, autoscale: AutoscaleOptions) -> list[str]:
    """Return the nodes that were being removed when the dump was taken, but stay in the plan."""
    if autoscale.autoscale == OFF:
        return leaving_nodes(snapshot.manifests, snapshot.taken_at)
    is_karpenter = is_of_karpenter(autoscale, snapshot.manifests)
    return nodes_to_be_deleted(
        snapshot.manifests,
        snapshot.taken_at,
        by_cluster_autoscaler=is_karpenter,
        by_karpenter=not is_karpenter,
    )


def _moved_pods(model: ClusterModel, batch: Collection[str]) -> Iterator[str]:
    """Yield a note if there are bound pods whose schedulerName is in `batch`."""
    found = {
        name
        for pod in model.pods()
        if model.cluster.node_of(pod)
        for name in [pod.pod.spec.scheduler_name]
        if name in batch
    }
    if found:
        yield (
            f"If pods with schedulerName {' and '.join(sorted(found))} have to leave their nodes, "
            "they follow kube-scheduler's rules here."
        )


def _waiting_groups(model: ClusterModel, *, are_placed: bool) -> Iterator[str]:
    """Yield a note about the batch scheduler's waiting pods, if there are any.

    `are_placed` says whether the plan places these pods.
    """
    waiting = [
        pod
        for pod in model.pods()
        if model.is_batch(pod) and not model.cluster.node_of(pod) and not pod.terminating
    ]
    if not waiting:
        return
    pods, is_one = counted(len(waiting), "waiting pod"), len(waiting) == 1
    if are_placed:
        them = "it" if is_one else "them"
        yield (
            f"{pods} of the batch scheduler {'counts' if is_one else 'count'} here, although the "
            f"limits of queues may keep {them} waiting."
        )
    else:
        only = "it starts only with its group" if is_one else "they start only in groups"
        be = "is" if is_one else "are"
        yield f"{pods} of the batch scheduler {be} not placed here, because {only}."
