"""Reads the input of a recorded kube-batch session: a configuration and a cluster's objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Node, Pod, PodGroup, PriorityClass, Queue
from fairlead.engine.batch.configuration_file import BatchConfig, read_configuration
from fairlead.engine.batch.defect import BatchDefects
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.batch.info.queue import DEFAULT_QUEUE
from fairlead.engine.batch.scheduler_name import KUBE_BATCH

_GROUP_API: Final = "scheduling.incubator.k8s.io/v1alpha1"


def configuration(scenario: Json, defects: BatchDefects) -> BatchConfig:
    """Return the scenario's configuration, with the upstream defects in `defects` enabled."""
    config = read_configuration(scenario["conf"])
    ownership = Ownership((_scheduler_name(scenario),), scenario.get("defaultQueue", DEFAULT_QUEUE))
    return replace(config, defects=defects, ownership=ownership)


def _scheduler_name(scenario: Json) -> str:
    name: str = scenario.get("schedulerName", KUBE_BATCH)
    return name


def objects(scenario: Json) -> Iterator[ApiObject]:
    """Yield the objects that kube-batch watches, without pending pods of other schedulers."""
    ours = _scheduler_name(scenario)
    for node in scenario["nodes"]:
        yield decode_as(Node, without_nulls(node))
    for queue in scenario["queues"]:
        yield decode_as(Queue, _object(queue, ("name", "creationTimestamp")))
    for group in scenario["podGroups"]:
        yield decode_as(PodGroup, _object(group, ("name", "namespace", "creationTimestamp")))
    for each in scenario["priorityClasses"]:
        yield decode_as(PriorityClass, {"metadata": {"name": each["name"]}, **each})
    for obj in scenario["pods"]:
        pod = decode_as(Pod, without_nulls(obj))
        if pod.status.phase != "Pending" or pod.spec.scheduler_name == ours:
            yield pod


def _object(flat: Json, meta: tuple[str, ...]) -> Json:
    """Return the manifest of an object from its recorded form `flat`.

    In `flat`, the fields of metadata and spec are at the top level. The fields named in `meta`
    become the metadata. All other fields, except `status`, become the spec.
    """
    return {
        "apiVersion": _GROUP_API,
        "metadata": {name: flat[name] for name in meta if flat.get(name)},
        "spec": {k: v for k, v in flat.items() if k not in (*meta, "status") and v is not None},
        "status": without_nulls(flat.get("status") or {}),
    }


def jobs_of_tasks(scenario: Json) -> dict[str, str]:
    """Return a map from the key of each recorded pod to the key of its job.

    The key of a job is `namespace/group`; the group is "" if the pod states no group.
    """
    found = {}
    for pod in scenario["pods"]:
        meta = pod["metadata"]
        group = meta.get("annotations", {}).get(GROUP_NAME_ANNOTATION, "")
        found[f"{meta['namespace']}/{meta['name']}"] = f"{meta['namespace']}/{group}"
    return found
