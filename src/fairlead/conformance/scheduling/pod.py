"""Replays recorded decisions of kube-scheduler about one pod in one cluster.

A case file contains JSON lines `{"case": input, "expect": decision}`. All of `expect` is compared.
For a random choice, `expect` contains the set of possible choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from fairlead.engine.core.status import Status
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import Evaluation, PreemptionEvaluation, evaluate
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

DEFAULT_PROFILE: Final = Profile()
_KINDS: dict[str, type[ApiObject]] = {
    "namespaces": Namespace,
    "nodes": Node,
    "pods": Pod,
    "services": Service,
    "replicationcontrollers": ReplicationController,
    "replicasets": ReplicaSet,
    "statefulsets": StatefulSet,
    "pdbs": PodDisruptionBudget,
}


def build(
    case: Json,
    more_kinds: Mapping[str, type[ApiObject]] | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> BuiltProfile:
    """Return `profile`, built for the cluster of `case`.

    Besides the usual lists of objects in `case`, read the lists that are named in `more_kinds`.
    `more_kinds` maps the name of each list to the type of its objects.
    """
    cluster, nominator = Cluster(), Nominator()
    objects = [
        decode_as(view, without_nulls(obj))
        for field, view in {**_KINDS, **(more_kinds or {})}.items()
        for obj in case.get(field) or ()
    ]
    cluster.apply(ObjectsLoaded(objects))
    built = build_profile(profile, PluginHandle(cluster, nominator), TieBreak(0))
    for pod in cluster.pods.values():
        if pod.pod.spec.scheduler_name == built.framework.profile.scheduler_name:
            _nominate(nominator, pod)
    return built


def _nominate(nominator: Nominator, pod: PodInfo) -> None:
    """Register the nominated node of a pending pod."""
    node = pod.pod.status.nominated_node_name
    if node and not pod.pod.spec.node_name:
        nominator.nominate(pod, node)


def pod_info(built: BuiltProfile, obj: Json) -> PodInfo:
    """Return the PodInfo of `obj`, the JSON of the pod to schedule."""
    pod = decode_as(Pod, without_nulls(obj))
    return PodInfo(pod, built.framework.cluster.shapes.shape_of(pod))


def decide(case: Json) -> Json:
    """Return Fairlead's decision about a case, in the form of a recording's field `expect`."""
    built = build(case)
    return as_expected(evaluate(built, pod_info(built, case["pending"])))


def as_expected(found: Evaluation) -> Json:
    """Return the evaluation `found` in the form of a recording's field `expect`."""
    if found.gated is not None:
        return {"preEnqueue": _status(found.gated)}
    if not found.verdicts:
        return {"fitError": found.fit_error}
    result: Json = {
        "filter": {
            name: "ok" if status is None else _status(status)
            for name, status in found.verdicts.items()
        },
    }
    if found.pre_filter is not None:
        # For a pod that PreFilter rejected, the recordings have neither skips nor rejectors.
        result |= {"preFilter": _status(found.pre_filter), "unschedulablePlugins": None}
    else:
        result["skippedFilter"] = found.skipped_filters
        if found.restricted_to is not None:
            result["preFilter"] = {"nodes": found.restricted_to}
    if found.fit_error:
        result["fitError"] = found.fit_error
        result.setdefault("unschedulablePlugins", list(found.unschedulable_plugins))
        result["preemption"] = _preemption(cast("PreemptionEvaluation", found.preemption))
    elif found.score_error:
        result["scoreError"] = found.score_error
    else:
        result |= _scores(found)
    if found.via:
        result["decision"] = {"nodes": found.choices, "via": found.via}
    return result


def _scores(found: Evaluation) -> Json:
    return {
        "scores": found.scores,
        "skippedScore": found.skipped_scores,
        "weights": found.weights,
        "total": found.totals,
        "best": found.best,
    }


def _status(status: Status) -> Json:
    return {"plugin": status.plugin, "code": str(status.code), "reasons": list(status.reasons)}


def _preemption(found: PreemptionEvaluation) -> Json:
    if found.ineligible:
        return {"eligible": False, "reason": found.ineligible}
    result: Json = {
        "eligible": True,
        "potentialNodes": sorted(found.potential_nodes),
        "candidates": {
            name: {
                "victims": [victim.key for victim in candidate.victims],
                "numPDBViolations": candidate.pdb_violations,
            }
            for name, candidate in found.candidates.items()
        },
        "nominated": found.nominated,
    }
    if found.rejected:
        result["rejected"] = {name: _status(status) for name, status in found.rejected.items()}
    if found.post_filter_error:
        result["postFilterError"] = found.post_filter_error
    return result
