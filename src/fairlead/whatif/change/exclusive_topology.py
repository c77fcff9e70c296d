"""Exclusive topologies of JobSets: each Job has a domain, such as a rack, to itself.

A JobSet or the template of a replicated job names the label of the domains in an annotation. The
webhook of JobSet gives the first pod of a Job an affinity to its own Job and an anti-affinity to
other Jobs. The webhook gives the other pods a node selector for the domain of the first pod, after
that pod has a node. Here, all pods get the affinities instead, so the pods end up in the same
domains. The webhook writes the priority of a pod to a label, and the anti-affinity applies only to
pods of the same priority. So pods of a higher priority can preempt pods of a lower priority.

A second annotation states that a program has labelled and tainted one group of nodes for each Job.
If a JobSet has this annotation, the pods get a node selector and a toleration instead of the
affinities.

upstream: jobset: pkg/webhooks/pod_webhook.go: Default, setExclusiveAffinities, setNodeSelector;
pkg/controllers/jobset_controller.go: labelAndAnnotateObject, constructJob
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json

JOB_KEY: Final = "jobset.sigs.k8s.io/job-key"
_PRIORITY: Final = "jobset.sigs.k8s.io/priority"
_ALPHA: Final = "alpha.jobset.sigs.k8s.io"
TOPOLOGY: Final = f"{_ALPHA}/exclusive-topology"
BY_NODE_SELECTOR: Final = f"{_ALPHA}/node-selector"
_NAMESPACED_JOB: Final = f"{_ALPHA}/namespaced-job"
_NO_SCHEDULE: Final = f"{_ALPHA}/no-schedule"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def topology_annotations(
    of_set: Mapping[str, str], of_template: Mapping[str, str]
) -> dict[str, str]:
    """Return the annotations about exclusive topologies that a Job and its pods get.

    `of_set` and `of_template` are the annotations of the JobSet and of the Job's template. The
    annotations of the template take precedence.
    """
    found: dict[str, str] = {}
    for given in (of_set, of_template):
        if TOPOLOGY in given:
            names = (TOPOLOGY, BY_NODE_SELECTOR)
            found |= {name: given[name] for name in names if name in given}
    return found


def priority_label(priority: int | None) -> dict[str, str]:
    """Return the label that JobSet's webhook writes to a pod of this priority; {} if unknown."""
    if priority is None:
        return {}
    return {_PRIORITY: f"n{-priority}" if priority < 0 else str(priority)}


def with_exclusive_topology(pod: Json, meta: Json, namespace: str, job: str) -> Json:
    """Return the pod spec `pod`, restricted to the exclusive topology that `meta` names.

    `meta` is the metadata of the pods, with the label JOB_KEY. If its annotations name no exclusive
    topology, `pod` is returned unchanged. `job` is the name of the Job. A field of a wrong type is
    left as it is.
    """
    annotations, labels = meta["annotations"], meta["labels"]
    topology = annotations.get(TOPOLOGY)
    if topology is None:
        return pod
    if BY_NODE_SELECTOR in annotations:
        toleration = {"key": _NO_SCHEDULE, "operator": "Exists", "effect": "NoSchedule"}
        selector = {_NAMESPACED_JOB: f"{namespace}_{job}"}
        return {
            **pod,
            "nodeSelector": _extended(pod.get("nodeSelector"), selector),
            "tolerations": _extended(pod.get("tolerations"), [toleration]),
        }
    own = {"key": JOB_KEY, "operator": "In", "values": [labels[JOB_KEY]]}
    others = [{"key": JOB_KEY, "operator": "Exists"}, {**own, "operator": "NotIn"}]
    if _PRIORITY in labels:
        others.append({"key": _PRIORITY, "operator": "In", "values": [labels[_PRIORITY]]})
    affinity = pod.get("affinity")
    if not isinstance(affinity, dict | None):
        return pod
    found = dict(affinity or {})
    for name, requirements in (("podAffinity", [own]), ("podAntiAffinity", others)):
        term = {
            "labelSelector": {"matchExpressions": requirements},
            "topologyKey": topology,
            "namespaceSelector": {},
        }
        given = found.get(name)
        if isinstance(given, dict | None):
            terms = _extended((given or {}).get(_REQUIRED), [term])
            found[name] = {**(given or {}), _REQUIRED: terms}
    return {**pod, "affinity": found}


def _extended(value: Any, more: Any) -> Any:
    """Return `value` extended by `more`, or unchanged if it is not a list, a map or None."""
    match value, more:
        case None, _:
            return more
        case list(), list():
            return [*value, *more]
        case dict(), dict():
            return {**value, **more}
        case _:
            return value
