"""GroupInfo: a PodGroup of any supported API, and the rule that assigns pods to groups.

    API                                     group of a pod                            minimum
    scheduling.incubator.k8s.io/v1alpha1    annotation scheduling.k8s.io/group-name   spec.minMember
    scheduling.sigs.dev/v1alpha2            the same
    scheduling.volcano.sh/v1beta1           the same
    scheduling.x-k8s.io/v1alpha1            label scheduling.x-k8s.io/pod-group       spec.minMember
    scheduling.k8s.io/v1alpha2              spec.schedulingGroup.podGroupName         gang.minCount

Groups are identified by namespace and name. If several APIs have a group of the same name, the
group of the last of these APIs in `PREFERENCE` is used. kube-batch uses the group that it received
last (cache/event_handlers.go: setPodGroup).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod, PodGroup, PodGroupStatus, ResourceList
from fairlead.api.pods.facts import controller_of
from fairlead.api.text.integer import parse_int64
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.task_status import ZERO_TIME
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant

GROUP_NAME_ANNOTATION: Final = "scheduling.k8s.io/group-name"
MIN_MEMBER_ANNOTATION: Final = "scheduling.k8s.io/group-min-member"
QUEUE_NAME_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
GROUP_LABELS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
KIND: Final = "PodGroup"
COSCHEDULING_API: Final = "scheduling.x-k8s.io"
UPSTREAM_API: Final = "scheduling.k8s.io"
VOLCANO_API: Final = "scheduling.volcano.sh"
PREFERENCE: Final = (
    "scheduling.incubator.k8s.io",
    "scheduling.sigs.dev",
    COSCHEDULING_API,
    UPSTREAM_API,
    VOLCANO_API,
)


class GroupInfo(Struct, frozen=True):
    """The pod group of a job. `ref` is None for a shadow group, which has no object.

    The kind of `ref` includes the API group (`PodGroup.scheduling.volcano.sh`), because PodGroups
    of different APIs may have the same name. `queue` is "" if the group is in the default queue.
    `priority` and `min_resources` are None if the object does not set them.
    """

    namespace: str
    name: str
    min_member: int
    queue: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    created: Instant = ZERO_TIME
    ref: ObjectRef | None = None
    api_group: str = ""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    min_resources: ResourceList | None = None


def group_info(group: PodGroup) -> GroupInfo:
    """Convert the PodGroup `group`, of any supported API, to a GroupInfo."""
    meta, spec = group.metadata, group.spec
    created, api_group = meta.creation_timestamp, group.api_version.rpartition("/")[0]
    return GroupInfo(
        namespace=meta.namespace,
        name=meta.name,
        min_member=_min_member(group),
        queue=spec.queue or meta.annotations.get(QUEUE_NAME_ANNOTATION, ""),
        priority_class_name=spec.priority_class_name,
        priority=spec.priority,
        created=parse_timestamp(created) if created else ZERO_TIME,
        ref=ObjectRef(
            f"{KIND}.{api_group}" if api_group else KIND, meta.namespace, meta.name, meta.uid
        ),
        api_group=api_group,
        status=group.status,
        min_resources=spec.min_resources,
    )


def _min_member(group: PodGroup) -> int:
    """Return the minimum number of members; 0 if `spec.schedulingPolicy` has no field `gang`."""
    policy = group.spec.scheduling_policy
    if policy is None:
        return group.spec.min_member
    return policy.gang.min_count if policy.gang is not None else 0


def group_name(pod: Pod) -> str:
    """Return the name of the pod's group, without the namespace; "" if the pod has no group."""
    meta = pod.metadata
    named = meta.annotations.get(GROUP_NAME_ANNOTATION, "")
    if named:
        return named
    if pod.spec.scheduling_group is not None:
        return pod.spec.scheduling_group.pod_group_name or ""
    return labelled_group(pod)


def labelled_group(pod: Pod) -> str:
    """Return the name of the group in the labels of `pod`; "" if the labels name no group.

    The labels are those that the plugin Coscheduling reads.
    """
    labels = pod.metadata.labels
    if labels.keys().isdisjoint(GROUP_LABELS):
        return ""
    return next((labels[label] for label in GROUP_LABELS if labels.get(label)), "")


def shadow_group(pod: Pod) -> GroupInfo:
    """Return the group of a pod that has no PodGroup.

    All pods of one controller share a group, which is created from the first of these pods. A pod
    without a controller has its own group. An annotation of the pod names the queue, as in Volcano.

    upstream: cache/util.go: createShadowPodGroup; for the queue,
    pkg/controllers/podgroup/pg_controller_handler.go: createNormalPodPGIfNotExist
    """
    meta = pod.metadata
    controller, created = controller_of(meta), meta.creation_timestamp
    minimum = parse_int64(meta.annotations.get(MIN_MEMBER_ANNOTATION, ""))
    return GroupInfo(
        namespace=meta.namespace,
        name=controller.uid if controller is not None else meta.uid,
        min_member=1 if minimum is None else minimum,
        queue=meta.annotations.get(QUEUE_NAME_ANNOTATION, ""),
        priority_class_name=pod.spec.priority_class_name,
        created=parse_timestamp(created) if created else ZERO_TIME,
    )
