"""Pods and data that are lost: pods that do not come back, and deleted claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.text.count import counted
from fairlead.apiserver.kind import DEPLOYMENT, STATEFUL_SET
from fairlead.whatif.outcome.assessment.sentence.unfinished import MAY_RETURN
from fairlead.whatif.outcome.assessment.sentence.words import (
    counted_pods,
    keys_of,
    listed_names,
    pods_of,
)
from fairlead.whatif.outcome.assessment.sentence.workload import (
    gangs_incomplete_at_end,
    stopped_rollouts,
)
from fairlead.whatif.outcome.comparison.difference import WAITS_FOR_LOWER
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.outage import LostPod
from fairlead.whatif.outcome.run_outcome import DeletedClaim, PodEnd, RunOutcome

_HELD_BACK_BY: Final = {  # {kind of a workload: why it creates no pods}
    STATEFUL_SET.kind: WAITS_FOR_LOWER,
    DEPLOYMENT.kind: "the Deployment is paused and has no ReplicaSet",
}


def data_deleted_sentence(effect: Effect) -> str | None:
    """Return sentences about deleted claims whose data is lost; None if there are none."""
    return data_deletion(effect.deleted_claims)


def claims_deleted_sentence(effect: Effect) -> str | None:
    """Return sentences about deleted claims whose volumes remain; None if there are none."""
    kept = [one for one in effect.deleted_claims if one.keeps_data]
    sentences = [
        f"{_deletion(found)}, and no volume: {listed_names([one.claim for one in found])}."
        for found in _by_use(kept)
    ]
    return " ".join(sentences) or None


def data_deletion(claims: Iterable[DeletedClaim]) -> str | None:
    """Return sentences about the deleted `claims` whose data is lost; None if there are none."""
    lost = [one for one in claims if not one.keeps_data]
    sentences = [
        f"{_deletion(found)}, {_lost_data(found)}: {listed_names([one.claim for one in found])}."
        for found in _by_use(lost)
    ]
    return " ".join(sentences) or None


def _by_use(claims: Sequence[DeletedClaim]) -> Iterator[list[DeletedClaim]]:
    """Yield the claims that are gone, and the claims that pods still use; leave out empty lists."""
    for is_in_use in (False, True):
        if found := [one for one in claims if one.is_in_use is is_in_use]:
            yield found


def _deletion(claims: Sequence[DeletedClaim]) -> str:
    """Return a clause that says that `claims` are deleted.

    Pods use either all or none of `claims`.
    """
    verb, pod = ("is", "its pods") if len(claims) == 1 else ("are", "their pods")
    when = f" as soon as {pod} are gone, which nothing can undo" if claims[0].is_in_use else ""
    return f"{_claims(claims)} {verb} deleted{when}"


def _lost_data(lost: Sequence[DeletedClaim]) -> str:
    """Return a clause about the volumes of the claims `lost`."""
    verb, volumes = ("is", "its volume") if len(lost) == 1 else ("are", "their volumes")
    if not all(one.reclaim_policy for one in lost):
        return f"perhaps with {volumes} (the dump lacks the reclaim policy)"
    return f"and so {verb} {volumes} with all data"


def _claims(claims: Sequence[DeletedClaim]) -> str:
    return counted(len(claims), "PersistentVolumeClaim")


def gone_sentence(effect: Effect) -> str | None:
    """Return sentences about pods that nothing replaces; None if there are none."""
    found = gone_for_good(effect.difference.gone)
    # The sentence about pending pods, if there is one, names the gangs.
    gangs = "" if found is None or effect.difference.pending else gangs_incomplete_at_end(effect)
    return found and f"{found}{gangs}"


def gone_for_good(pods: Sequence[PodEnd]) -> str | None:
    """Return a sentence about `pods`, which nothing replaces; None if `pods` is empty."""
    if not pods:
        return None
    verb = "is" if len(pods) == 1 else "are"
    names = listed_names(keys_of(pods))
    return f"{counted_pods(len(pods))} {verb} gone for good: nothing replaces {names}."


def not_created_sentence(effect: Effect) -> str | None:
    """Return sentences about pods that their workloads do not create; None if there are none."""
    return " ".join(filter(None, (_not_replaced(effect), _held_back(effect)))) or None


def _not_replaced(effect: Effect) -> str | None:
    """Return a sentence about displaced pods that are not created again; None if there are none."""
    pods = effect.difference.not_created
    if not pods:
        return None
    verb = "is" if len(pods) == 1 else "are"
    awaited = list(dict.fromkeys(one.waits_for for one in pods if one.waits_for))
    refused = {one.workload for one in effect.errors}
    why = f": the StatefulSet waits for {listed_names(awaited)}" if awaited else ""
    if not why:
        why = _old_pods_stay([one.pod for one in pods], effect.changed)
    if not why and all(_is_ordered(one.pod) and one.pod.workload not in refused for one in pods):
        why = f": {WAITS_FOR_LOWER}"
    others = (one for one in effect.workloads if one.not_created)
    rollouts = stopped_rollouts(one for one in others if not (one.pending or one.missing))
    return f"{pods_of([one.pod for one in pods])} {verb} not created again{why}.{rollouts}"


def _held_back(effect: Effect) -> str | None:
    """Return sentences about the pods that the workloads `effect.held_back` lack, or None."""
    sentences = []
    for kind, why in _HELD_BACK_BY.items():
        if rows := [one for one in effect.held_back if one.workload.kind == kind]:
            count = sum(one.missing for one in rows)
            names, verb = (
                listed_names([str(one.workload) for one in rows]),
                "is" if count == 1 else "are",
            )
            each = why if len(rows) == 1 else why.replace("the ", "each ", 1)
            sentences.append(f"{counted_pods(count)} of {names} {verb} not created: {each}.")
    return " ".join(sentences) or None


def _old_pods_stay(pods: Sequence[PodEnd], run: RunOutcome) -> str:
    """Return a clause that the deleted `pods` have not stopped; "" if one of them is gone."""
    ends = [run.pods.get(pod.key) for pod in pods]
    leaving = [end for end in ends if end is not None and end.is_terminating]
    if len(leaving) < len(pods):
        return ""
    silent = {node.name for node in run.nodes if not node.is_ready}
    are, have = ("the old pod", "has") if len(pods) == 1 else ("the old pods", "have")
    if all(pod.node in silent for pod in leaving):
        never = "never stops" if len(pods) == 1 else "never stop"
        return f": {are} {never}, because the kubelet of the node does not answer"
    return f": {are} {have} not stopped"


def _is_ordered(pod: PodEnd) -> bool:
    return pod.workload.kind == STATEFUL_SET.kind


def down_sentence(effect: Effect) -> str | None:
    """Return a sentence about pods of failed nodes that stay down; None if there are none."""
    pending = {pod.key for pod in effect.difference.pending}
    gone = {pod.key for pod in effect.difference.gone}
    awaited = {one.pod.key for one in effect.difference.not_created}
    return not_back([one for one in effect.lost if one.pod not in pending | gone | awaited])


def not_back(lost: Sequence[LostPod]) -> str | None:
    """Return a sentence about the `lost` pods; None if a longer run may bring all of them back."""
    if all(one.cause in MAY_RETURN for one in lost):
        return None
    causes = Counter(one.cause.words for one in lost).most_common()
    words = ", ".join(f"{cause} ({count:,})" for cause, count in causes)
    words = causes[0][0] if len(causes) == 1 else words
    verb = "is" if len(lost) == 1 else "are"
    return f"{counted_pods(len(lost))} of failed nodes {verb} not back: {words}."
