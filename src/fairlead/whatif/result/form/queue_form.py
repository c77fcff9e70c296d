"""The forms of the explanations of queues, quotas and PriorityClasses."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from fairlead.whatif.result.form.answer_form import AnswerForm, NextStepForm, about


class QueueResourceForm(Struct, forbid_unknown_fields=True):
    """What a queue requests, uses and deserves of a resource, as numbers and as text."""

    resource: Annotated[str, about("the resource")]
    requested: Annotated[int, about("what the queue requests")]
    allocated: Annotated[int, about("what the queue uses")]
    deserved: Annotated[float, about("what the queue deserves")]
    capability: Annotated[int | None, about("the limit of the queue, or `null`")]
    guarantee: Annotated[int | None, about("the guarantee of the queue, or `null`")]
    cluster: Annotated[int, about("the total amount of all nodes")]
    requested_words: Annotated[str, about("`requested` as text")]
    allocated_words: Annotated[str, about("`allocated` as text")]
    deserved_words: Annotated[str, about("`deserved` as text")]
    capability_words: Annotated[str, about("`capability` as text")]
    guarantee_words: Annotated[str, about("`guarantee` as text")]
    cluster_words: Annotated[str, about("`cluster` as text")]


class WaitingGroupForm(Struct, forbid_unknown_fields=True):
    """A group of pods that waits in the explained queue, with the reason."""

    group: Annotated[str, about("the group")]
    ready: Annotated[int, about("number of members that have a node or have succeeded")]
    min_member: Annotated[int, about("the minimum number of members")]
    ready_words: Annotated[str, about("`ready` and `min_member` as text")]
    obstacle: Annotated[str, about("the kind of the obstacle, such as `NO_NODE`")]
    why: Annotated[str, about("the obstacle in words")]
    remedy: Annotated[str, about('changes with which the group would start now, or `""`')]
    starts_after_s: Annotated[
        float | None, about("estimated time until the group starts; `null` if unknown")
    ]


class HoldingGroupForm(Struct, forbid_unknown_fields=True):
    """A group in the explained queue that has pods on nodes, and what they request."""

    group: Annotated[str, about("the group")]
    members: Annotated[int, about("number of pods of the group on nodes")]
    priority: Annotated[int, about("the priority of the group")]
    amounts: Annotated[dict[str, int], about("what these pods request, by resource")]
    holds: Annotated[str, about("`amounts` as text")]


class QueueRowForm(Struct, forbid_unknown_fields=True):
    """A queue of the cluster, to compare the explained queue with."""

    queue: Annotated[str, about("the queue")]
    weight: Annotated[int, about("the weight of the queue")]
    deserved: Annotated[dict[str, float], about("what the queue deserves, by resource")]
    allocated: Annotated[dict[str, int], about("what the queue uses, by resource")]
    requested: Annotated[dict[str, int], about("what the queue requests, by resource")]
    share: Annotated[float, about("the largest ratio of used to deserved amounts")]
    share_words: Annotated[str, about("`share` as text")]


class QueueExplanationForm(AnswerForm, kw_only=True, tag="QueueExplanation"):
    """`fairlead explain queue/NAME`: a queue of kube-batch or Volcano."""

    queue: Annotated[str, about("the queue")]
    exists: Annotated[bool, about("`true` if the queue exists")]
    is_open: Annotated[bool, about("`true` if the queue is open")]
    weight: Annotated[
        int | None, about("the weight of the queue; `null` if the queue does not exist")
    ]
    parent: Annotated[str | None, about("the parent of the queue, or `null`")]
    reclaimable: Annotated[
        bool, about("`true` if other queues may reclaim resources from this queue")
    ]
    share: Annotated[
        float | None, about("the largest ratio of used to deserved amounts; `null` if unknown")
    ]
    is_overused: Annotated[bool, about("`true` if the queue uses all that it deserves")]
    waiting_count: Annotated[int, about("number of waiting groups")]
    victims: Annotated[list[str], about("pods that the next session evicts for the queue")]
    losses: Annotated[list[str], about("pods of the queue that the next session evicts")]
    resources: Annotated[list[QueueResourceForm], about("the resources of the queue")]
    waiting: Annotated[list[WaitingGroupForm], about("the first of the queue's waiting groups")]
    holding: Annotated[list[HoldingGroupForm], about("the queue's groups that have pods on nodes")]
    queues: Annotated[list[QueueRowForm], about("all queues with groups or guarantees")]


class EveryQueueForm(Struct, forbid_unknown_fields=True):
    """A queue of the cluster, with the number of its waiting groups."""

    queue: Annotated[str, about("the queue")]
    weight: Annotated[int, about("the weight of the queue")]
    deserved: Annotated[dict[str, float], about("what the queue deserves, by resource")]
    allocated: Annotated[dict[str, int], about("what the queue uses, by resource")]
    requested: Annotated[dict[str, int], about("what the queue requests, by resource")]
    share: Annotated[float, about("the largest ratio of used to deserved amounts")]
    share_words: Annotated[str, about("`share` as text")]
    waiting: Annotated[int, about("number of waiting groups")]


class QueueAmountForm(Struct, forbid_unknown_fields=True):
    """What a queue requests, uses and deserves of a resource."""

    queue: Annotated[str, about("the queue")]
    resource: Annotated[str, about("the resource")]
    requested: Annotated[int, about("what the queue requests")]
    allocated: Annotated[int, about("what the queue uses")]
    deserved: Annotated[float, about("what the queue deserves")]
    requested_words: Annotated[str, about("`requested` as text")]
    allocated_words: Annotated[str, about("`allocated` as text")]
    deserved_words: Annotated[str, about("`deserved` as text")]


class QueuesExplanationForm(AnswerForm, kw_only=True, tag="QueuesExplanation"):
    """`fairlead explain queues`: all queues of kube-batch or Volcano."""

    waiting_count: Annotated[int, about("number of waiting groups")]
    absent: Annotated[
        dict[str, int], about("queues that do not exist, with the number of their waiting groups")
    ]
    queues: Annotated[list[EveryQueueForm], about("the queues")]
    amounts: Annotated[list[QueueAmountForm], about("the resources of each queue")]


class KueueAmountForm(Struct, forbid_unknown_fields=True):
    """A quota of the explained ClusterQueue; amounts are text such as 500m or 2Gi."""

    flavor: Annotated[str, about("the ResourceFlavor")]
    resource: Annotated[str, about("the resource")]
    quota: Annotated[str, about("the nominal quota")]
    borrowing_limit: Annotated[str, about('the borrowing limit, or `""`')]
    reserved: Annotated[str, about('the reserved amount, or `""`')]
    left: Annotated[str, about("the rest of the quota")]


class KueueWaitingForm(Struct, forbid_unknown_fields=True):
    """A Workload of Kueue that waits for admission."""

    workload: Annotated[str, about("the workload")]
    queue: Annotated[str, about("the LocalQueue of the workload")]
    pods: Annotated[int, about("number of pods of the workload")]
    priority: Annotated[int, about("the priority of the workload")]
    why: Annotated[str, about("why the workload waits, as Kueue states it")]


class KueueAdmittedForm(Struct, forbid_unknown_fields=True):
    """A Workload that Kueue has admitted."""

    workload: Annotated[str, about("the workload")]
    queue: Annotated[str, about("the LocalQueue of the workload")]
    pods: Annotated[int, about("number of pods of the workload")]
    uses: Annotated[str, about("what the workload uses, as text")]


class KueueQueueExplanationForm(AnswerForm, kw_only=True, tag="KueueQueueExplanation"):
    """`fairlead explain` about a LocalQueue or ClusterQueue of Kueue."""

    next_steps: Annotated[list[NextStepForm], about("what to do next")]
    queue: Annotated[str, about("the queue")]
    cluster_queue: Annotated[
        str | None, about("the ClusterQueue of the queue; `null` if there is no such ClusterQueue")
    ]
    waiting_count: Annotated[int, about("number of workloads that wait for admission")]
    admitted_count: Annotated[int, about("number of admitted workloads")]
    amounts: Annotated[list[KueueAmountForm], about("the quotas of the ClusterQueue")]
    waiting: Annotated[list[KueueWaitingForm], about("workloads that wait, in Kueue's order")]
    admitted: Annotated[list[KueueAdmittedForm], about("admitted workloads")]


class KueueQueueForm(Struct, forbid_unknown_fields=True):
    """A ClusterQueue of Kueue, with the numbers of its workloads."""

    queue: Annotated[str, about("the ClusterQueue")]
    waiting: Annotated[int, about("number of workloads that wait for admission")]
    admitted: Annotated[int, about("number of admitted workloads")]


class KueueQueueAmountForm(Struct, forbid_unknown_fields=True):
    """A quota of a ClusterQueue of Kueue; amounts are text such as 500m or 2Gi."""

    queue: Annotated[str, about("the ClusterQueue")]
    flavor: Annotated[str, about("the ResourceFlavor")]
    resource: Annotated[str, about("the resource")]
    quota: Annotated[str, about("the nominal quota")]
    borrowing_limit: Annotated[str, about('the borrowing limit, or `""`')]
    reserved: Annotated[str, about('the reserved amount, or `""`')]
    left: Annotated[str, about("the rest of the quota")]


class KueueQueuesExplanationForm(AnswerForm, kw_only=True, tag="KueueQueuesExplanation"):
    """`fairlead explain clusterqueues`: all ClusterQueues of Kueue."""

    waiting_count: Annotated[int, about("number of workloads that wait for admission")]
    queues: Annotated[list[KueueQueueForm], about("the ClusterQueues")]
    amounts: Annotated[list[KueueQueueAmountForm], about("the quotas of the ClusterQueues")]


class QuotaResourceForm(Struct, forbid_unknown_fields=True):
    """The limit and the usage of a resource in a ResourceQuota, as quantities."""

    resource: Annotated[str, about("the resource")]
    used: Annotated[str, about("the used amount")]
    hard: Annotated[str, about("the limit")]
    left: Annotated[str, about("`hard` minus `used`")]


class QuotaUserForm(Struct, forbid_unknown_fields=True):
    """A workload or another object that counts against the explained ResourceQuota."""

    user: Annotated[str, about("the workload or object")]
    objects: Annotated[int, about("number of objects that count against the quota")]
    amounts: Annotated[dict[str, str], about("what these objects use, by resource")]
    uses: Annotated[str, about("`amounts` as text")]


class QuotaWaitingForm(Struct, forbid_unknown_fields=True):
    """A workload that lacks pods because the explained ResourceQuota refuses them."""

    pods: Annotated[int, about("number of missing pods")]
    workload: Annotated[str, about("the workload")]
    since_s: Annotated[float | None, about("for how long the pods have been missing, if known")]
    why: Annotated[str, about("why the pods are not created")]


class QuotaExplanationForm(AnswerForm, kw_only=True, tag="QuotaExplanation"):
    """`fairlead explain quota/NAMESPACE/NAME`: a ResourceQuota."""

    next_steps: Annotated[list[NextStepForm], about("what to do next")]
    quota: Annotated[str, about("the ResourceQuota")]
    missing_pods: Annotated[int, about("number of pods that are not created because of the quota")]
    sufficient: Annotated[
        dict[str, str], about("limits with which the missing pods would be created, by resource")
    ]
    resources: Annotated[list[QuotaResourceForm], about("the resources of the quota")]
    waiting: Annotated[
        list[QuotaWaitingForm], about("workloads that lack pods because of the quota")
    ]
    users: Annotated[list[QuotaUserForm], about("workloads and other objects that use the quota")]


class QuotaRowForm(Struct, forbid_unknown_fields=True):
    """A ResourceQuota and its scarcest resource; amounts are text such as 500m or 2Gi."""

    quota: Annotated[str, about("the ResourceQuota")]
    resource: Annotated[str, about('the first of the quota\'s scarcest resources, or `""`')]
    scarcest: Annotated[str, about("the quota's scarcest resources as text")]
    used: Annotated[str, about("the used amount of `resource`")]
    hard: Annotated[str, about("the limit of `resource`")]
    left: Annotated[str, about("`hard` minus `used`")]
    pods: Annotated[int, about("number of pods that are not created because of the quota")]


class QuotasExplanationForm(AnswerForm, kw_only=True, tag="QuotasExplanation"):
    """`fairlead explain quotas`: all ResourceQuotas."""

    missing_pods: Annotated[int, about("number of pods that are not created because of quotas")]
    quotas: Annotated[list[QuotaRowForm], about("the ResourceQuotas")]


class ClassWorkloadForm(Struct, forbid_unknown_fields=True):
    """A workload whose pods have the explained PriorityClass."""

    workload: Annotated[str, about("the workload")]
    pods: Annotated[int, about("number of pods of the workload with the class")]
    pending: Annotated[int, about("number of these pods without a node")]
    requests: Annotated[str, about("`requested` as text")]
    requested: Annotated[dict[str, int], about("what these pods request, by resource")]


class ClassVictimsForm(Struct, forbid_unknown_fields=True):
    """Pods of a lower PriorityClass that pods of the explained class may preempt."""

    priority_class: Annotated[str, about("the class, or `no class`")]
    value: Annotated[int, about("the value of the class")]
    pods: Annotated[int, about("number of pods that may be preempted")]
    with_budget: Annotated[int, about("number of these pods with a disruption budget")]
    against_budget: Annotated[
        int, about("number of these pods whose preemption would breach the budget")
    ]
    requests: Annotated[str, about("`requested` as text")]
    requested: Annotated[dict[str, int], about("what these pods request, by resource")]


class PreemptorForm(Struct, forbid_unknown_fields=True):
    """A PriorityClass whose pods may preempt pods of the explained class."""

    priority_class: Annotated[str, about("the class")]
    value: Annotated[int, about("the value of the class")]
    policy: Annotated[str, about("the preemptionPolicy of the class")]
    pods: Annotated[int, about("number of pods of the class")]
    may_preempt: Annotated[
        int, about("number of pods of the explained class that these pods may preempt")
    ]


class PriorityClassExplanationForm(AnswerForm, kw_only=True, tag="PriorityClassExplanation"):
    """`fairlead explain pc/NAME`: a PriorityClass."""

    priority_class: Annotated[str, about("the class")]
    value: Annotated[int, about("the value of the class")]
    global_default: Annotated[bool, about("`true` if the class is the global default")]
    preemption_policy: Annotated[str, about("the preemptionPolicy of the class")]
    problems: Annotated[list[str], about("sentences about possible mistakes")]
    pods: Annotated[int, about("number of pods of the class")]
    pending: Annotated[int, about("number of pods of the class without a node")]
    requested: Annotated[dict[str, int], about("what the pods of the class request, by resource")]
    victims: Annotated[int, about("number of pods that the pods of the class may preempt")]
    victims_with_budget: Annotated[int, about("number of these victims with a disruption budget")]
    victims_against_budget: Annotated[
        int, about("number of these victims whose preemption would breach the budget")
    ]
    workloads: Annotated[list[ClassWorkloadForm], about("workloads whose pods use the class")]
    may_preempt: Annotated[
        list[ClassVictimsForm], about("pods that the pods of the class may preempt, by class")
    ]
    preemptors: Annotated[
        list[PreemptorForm], about("classes whose pods may preempt pods of this class")
    ]


class ClassRowForm(Struct, forbid_unknown_fields=True):
    """A PriorityClass, with the numbers of its pods."""

    priority_class: Annotated[str, about("the class, or `no class`")]
    value: Annotated[int, about("the value of the class")]
    global_default: Annotated[bool, about("`true` if the class is the global default")]
    policy: Annotated[str, about("the preemptionPolicy of the class")]
    pods: Annotated[int, about("number of pods of the class")]
    requests: Annotated[str, about("`requested` as text")]
    requested: Annotated[dict[str, int], about("what the pods of the class request, by resource")]
    may_preempt: Annotated[int, about("number of pods that the pods of the class may preempt")]
    may_be_preempted: Annotated[
        int, about("number of pods of the class that other pods may preempt")
    ]


class PriorityClassesExplanationForm(AnswerForm, kw_only=True, tag="PriorityClassesExplanation"):
    """`fairlead explain priorityclasses`: all PriorityClasses."""

    problems: Annotated[list[str], about("sentences about possible mistakes")]
    classes: Annotated[list[ClassRowForm], about("the classes, highest value first")]
