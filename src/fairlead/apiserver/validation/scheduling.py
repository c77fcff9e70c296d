"""Validates PriorityClasses, and the Queues and PodGroups of batch schedulers.

Volcano and kube-batch define their Queues and PodGroups as custom resources. Like the schemas of
these resources, this module refuses malformed amounts. The module also refuses negative amounts,
negative counts, and counts that do not fit in an int32.

upstream: pkg/apis/scheduling/validation/validation.go,
volcano: config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml, _podgroups.yaml
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import PodGroup, PriorityClass, Queue, ResourceList
from fairlead.apiserver.kind import PRIORITY_CLASS
from fairlead.apiserver.validation.core.pod.spec import INT32_MAX, PREEMPTION_POLICIES
from fairlead.apiserver.validation.core.resource import NOT_A_QUANTITY, quantity_or_none
from fairlead.apiserver.validation.meta.field import (
    NOT_NEGATIVE,
    Causes,
    forbidden,
    invalid,
    not_supported,
)

USER_PRIORITY_MAX: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
# The groups in which batch schedulers have defined Queues and PodGroups.
BATCH_GROUPS: Final = (
    "scheduling.volcano.sh", "scheduling.incubator.k8s.io", "scheduling.sigs.dev",
    "scheduling.x-k8s.io",
)  # fmt: skip


PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"


def _system_class(name: str, value: int, description: str) -> Json:
    return {
        "apiVersion": PRIORITY_CLASS.api_version,
        "kind": PRIORITY_CLASS.kind,
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "preemptionPolicy": PREEMPT_LOWER_PRIORITY,
        "description": description,
    }


# upstream: pkg/apis/scheduling/v1/helpers.go:SystemPriorityClasses
SYSTEM_CLASSES: Final = {
    obj["metadata"]["name"]: obj
    for obj in (
        _system_class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        _system_class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, "
            "but can be moved to another node if necessary.",
        ),
    )
}


def check_priority_class(obj: PriorityClass) -> Causes:
    """Yield the errors of a PriorityClass."""
    name = obj.metadata.name
    if name.startswith(SYSTEM_PREFIX):
        yield from _check_system_class(obj)
    elif obj.value > USER_PRIORITY_MAX:
        why = f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
        yield forbidden("value", why)
    if obj.value < -INT32_MAX - 1:
        why = f"must be between {-INT32_MAX - 1} and {INT32_MAX}, inclusive"
        yield invalid("value", obj.value, why)
    policy = obj.preemption_policy
    if policy and policy not in PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES)


def check_priority_class_update(old: Json, new: Json) -> Causes:
    """Yield an error if an update changes `value`, and another if it changes `preemptionPolicy`."""
    before, after = decode_as(PriorityClass, old), decode_as(PriorityClass, new)
    if before.value != after.value:
        yield forbidden("value", "may not be changed in an update.")
    if before.preemption_policy != after.preemption_policy:
        yield invalid("preemptionPolicy", after.preemption_policy, "field is immutable")


def _check_system_class(obj: PriorityClass) -> Causes:
    """Yield an error unless `obj`, whose name has the system prefix, is a known system class.

    Each of the two system classes has a fixed value, and neither can be the global default.
    """
    # upstream: pkg/apis/scheduling/v1/helpers.go:IsKnownSystemPriorityClass
    name = obj.metadata.name
    known = SYSTEM_CLASSES.get(name)
    if known is None:
        problem = f"{name} is not a known system priority class"
    elif obj.value != known["value"]:
        problem = f"value of {name} PriorityClass must be {known['value']}"
    elif obj.global_default:
        problem = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    why = (
        f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. "
        f"error: {problem}"
    )
    yield forbidden("metadata.name", why)


def check_queue(queue: Queue) -> Causes:
    """Yield the errors of a Queue of kube-batch or Volcano."""
    spec = queue.spec
    yield from _check_count("spec.weight", spec.weight or 0)
    yield from _check_amounts("spec.capability", spec.capability)
    yield from _check_amounts("spec.deserved", spec.deserved)
    yield from _check_amounts("spec.guarantee.resource", spec.guarantee.resource)


def check_pod_group(group: PodGroup) -> Causes:
    """Yield the errors of a PodGroup of kube-batch or Volcano."""
    yield from _check_count("spec.minMember", group.spec.min_member)
    yield from _check_amounts("spec.minResources", group.spec.min_resources or {})


def _check_count(field: str, count: int) -> Causes:
    """Yield an error if `count` is negative or exceeds an int32."""
    if not 0 <= count <= INT32_MAX:
        yield invalid(field, count, f"must be between 0 and {INT32_MAX}, inclusive")


def _check_amounts(field: str, resources: ResourceList) -> Causes:
    for name, text in resources.items():
        quantity = quantity_or_none(text)
        if quantity is None:
            yield invalid(f"{field}[{name}]", str(text), NOT_A_QUANTITY)
        elif quantity.nano < 0:
            yield invalid(f"{field}[{name}]", str(text), NOT_NEGATIVE)
