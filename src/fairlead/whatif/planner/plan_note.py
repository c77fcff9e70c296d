"""Notes of a plan: rules that were not applied, and values added to the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fairlead.api.text.count import counted
from fairlead.apiserver.kind import DEVICE_TAINT_RULE, POD, POD_GROUP
from fairlead.engine.state.pod_groups import GROUP
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    NO_AUTOSCALING,
    OFF,
    AutoscaleOptions,
    is_of_karpenter,
)
from fairlead.whatif.configuration.other_scheduler import rules_note, unknown_schedulers
from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_release
from fairlead.whatif.planner.cluster_model import ClusterModel, ModelErrors
from fairlead.whatif.snapshot.dump_note import (
    IGNORED_GROUPS,
    IGNORED_RULES,
    dump_notes,
    kueue_notes,
)
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.node_lifecycle.leaving_node import (
    leaving_nodes,
    leaving_note,
    nodes_to_be_deleted,
)
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.unsimulated_controller import (
    LostPods,
    unsimulated_controllers,
    workload_key,
)

_ONLY_WITH_GROUP: Final = "only in groups."
_NO_EXTENDERS: Final = "Extenders are not called, so their rules are missing here."
_SIMULATED_EXTENDERS: Final = (
    "Only the simulated drains call extenders; the rest of this answer, such as what blocks nodes "
    "and where pods go, ignores their rules."
)


def plan_notes(  # noqa: PLR0913 - what the notes depend on
    snapshot: Snapshot,
    model: ClusterModel,
    choice: ReleaseChoice,
    autoscale: AutoscaleOptions = NO_AUTOSCALING,
    *,
    places_gangs: bool = False,
    lost: LostPods | None = None,
    about: Callable[[PodInfo], bool] = lambda _: True,
) -> tuple[str, ...]:
    """Return the notes about a plan for `snapshot`, each a sentence.

    If `autoscale` selects an autoscaler, the plan is a simulation in which the autoscaler acts and
    extenders are called. `places_gangs` is set if the plan places the pods of the batch scheduler.
    `lost` are the pods that the plan may remove from their nodes; None if it may remove any pod.
    `about` returns whether the answer may be about a pod. Notes about Kueue, and about schedulers
    that do not exist, are only about such pods. For the pods that the plan places, `rules_notes`
    returns further notes.
    """
    release = read_release(choice)
    words = Releases(release, release).with_gates(model.gates).words
    rules = any(one.kind is DEVICE_TAINT_RULE for one in snapshot.manifests)
    groups = any(
        one.kind is POD_GROUP and str(one.value.get("apiVersion")).startswith(f"{GROUP}/")
        for one in snapshot.manifests
    )
    concerned = [pod for pod in model.pods() if about(pod)]
    unknown = {pod.pod.spec.scheduler_name for pod in concerned if model.missing_scheduler(pod)}
    # The printed answer shows only the first notes, so notes about missing rules come first.
    return (
        *([words] if words else []),
        *([_NO_EXTENDERS] if model.has_extenders and autoscale.autoscale == OFF else []),
        *unreadable_notes(snapshot.unreadable),
        *unsimulated_controllers(snapshot.manifests, lost),
        *dump_notes(snapshot),
        *_kueue_notes(snapshot, concerned, are_placed=places_gangs),
        *leaving_note(_leaving(snapshot, autoscale)),
        *([IGNORED_GROUPS] if groups and not model.has_pod_groups else []),
        *([IGNORED_RULES] if rules and not release.scheduler.device_taint_rules else []),
        *unknown_schedulers(unknown),
        *_recommended(model.recommended_workloads),
        *_waiting_groups(model, are_placed=places_gangs),
    )  # fmt: skip


def with_simulation(notes: Iterable[str]) -> Iterator[str]:
    """Yield `notes`, the notes about a plan whose drains have been simulated.

    The simulation calls extenders, so the note about extenders is replaced. The simulation also
    runs the batch scheduler, so the note about waiting gangs gets a second sentence.
    """
    for note in notes:
        if note.endswith(_ONLY_WITH_GROUP):
            yield f"{note} In the simulated drains, such groups may start and take room."
        else:
            yield _SIMULATED_EXTENDERS if note == _NO_EXTENDERS else note


def _kueue_notes(
    snapshot: Snapshot, concerned: Iterable[PodInfo], *, are_placed: bool
) -> Iterator[str]:
    """Yield a note about the workloads that Kueue holds back.

    If `are_placed` is set, the plan keeps room for other gangs that wait. It keeps no room for the
    workloads that Kueue holds back, and the note says so. If `are_placed` is not set, there is a
    note only if Kueue manages some of the pods `concerned`.
    """
    for note in kueue_notes(snapshot.manifests, None if are_placed else _keys_of(concerned)):
        yield f"{note} This answer keeps no room for such workloads." if are_placed else note


def _keys_of(pods: Iterable[PodInfo]) -> set[tuple[str, str, str]]:
    """Return the keys of `pods` and of their controllers, for `kueue_notes`."""
    keys = set()
    for pod in pods:
        keys |= {workload_key(pod.pod), (POD.kind, pod.namespace, pod.pod.metadata.name)}
    return keys


def rules_notes(model: ClusterModel) -> tuple[str, ...]:
    """Return a note if a finished plan applies kube-scheduler's rules to pods of other schedulers.

    `model` is the model in which the plan has placed pods.
    """
    names = sorted(model.guessed_schedulers)
    return (rules_note(names),) if names else ()


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
        be, starts = ("is", "it starts") if is_one else ("are", "they start")
        yield (
            f"{pods} of the batch scheduler {be} not placed here, because {starts} "
            f"{_ONLY_WITH_GROUP}"
        )
