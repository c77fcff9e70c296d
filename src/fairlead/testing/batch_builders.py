"""Builders for PodGroups, Queues and their pods; see `fairlead.testing.builders`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod, PodGroup, PriorityClass, Queue
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.scheduler_name import KUBE_BATCH
from fairlead.testing.builders import make_pod
from fairlead.testing.built_object import built_as_read

VOLCANO = "scheduling.volcano.sh/v1beta1"


def make_task(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    group: str = "",
    *,
    cpu: int | str = 1,
    memory: str = "1Gi",
    scheduler: str = KUBE_BATCH,
    meta: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **pod: Any,
) -> Pod:
    """Return a pod that requests `cpu` and `memory`, for the batch scheduler `scheduler`.

    If `cpu` is 0, the pod has no requests. If `group` is not "", kube-batch's annotation makes the
    pod a member of `group`. `meta` contains fields of the metadata by their Python names. `pod`
    contains further arguments for `make_pod`.
    """
    made = make_pod(
        name,
        requests={"cpu": cpu, "memory": memory} if cpu else {},
        spec={"schedulerName": scheduler, **(spec or {})},
        **pod,
    )
    membership = {GROUP_NAME_ANNOTATION: group} if group else {}
    changes = {"annotations": {**membership, **(annotations or {})}, **(meta or {})}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, **changes))


def make_group(
    name: str,
    min_member: int,
    queue: str = "",
    *,
    api: str = VOLCANO,
    namespace: str = "default",
    status: Json | None = None,
    **spec: Any,
) -> PodGroup:
    """Return a PodGroup that needs `min_member` pods; `queue` "" means the default queue.

    `api` is the PodGroup's apiVersion, by default Volcano's. `spec` adds fields to its spec by JSON
    names.
    Raises DecodeError for a field that Fairlead does not read.
    """
    own = {"minMember": min_member, **({"queue": queue} if queue else {}), **spec}
    meta = {"name": name, "namespace": namespace, "uid": f"uid-group-{name}"}
    body = {"metadata": meta, "spec": own, "status": status or {}}
    return built_as_read(PodGroup, {"apiVersion": api, **body})


def make_queue(name: str, weight: int = 1, *, state: str = "", **spec: Any) -> Queue:
    """Return a Queue with `weight` in its spec and `state` in its status ("" for none).

    `spec` adds fields to its spec by JSON names. Raises DecodeError for a field that Fairlead does
    not read.
    """
    body = {"metadata": {"name": name}, "spec": {"weight": weight, **spec}}
    return built_as_read(Queue, {**body, "status": {"state": state}})


def make_priority_class(name: str, value: int, *, default: bool = False) -> PriorityClass:
    """Return a PriorityClass; `default` makes it the global default."""
    body = {"metadata": {"name": name}, "value": value, "globalDefault": default}
    return decode_as(PriorityClass, body)


def make_gang(
    name: str,
    members: int,
    *,
    min_member: int | None = None,
    queue: str = "",
    node: str | Sequence[str] = "",
    priority_class: str = "",
    **task: Any,
) -> list[PodGroup | Pod]:
    """Return a PodGroup and its pods `name-0`, `name-1`, ….

    `members` is the number of pods, and the default of `min_member`. `node` is one node for all
    pods, or a sequence with one node per pod; "" means no node. `queue` and `priority_class` are
    fields of the PodGroup. `task` has further arguments of `make_task`.
    """
    nodes = [node] * members if isinstance(node, str) else list(node)
    pods = [make_task(f"{name}-{i}", name, node=nodes[i], **task) for i in range(members)]
    minimum = members if min_member is None else min_member
    return [make_group(name, minimum, queue, priorityClassName=priority_class), *pods]
