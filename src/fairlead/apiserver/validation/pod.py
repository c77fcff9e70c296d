"""Pods, and the templates from which workloads make them.

`check_pod_spec` holds for any pod, stored ones included: it refuses what nobody could make sense
of. The other two hold for new pods besides; the last one, only where something shall run them.

upstream: pkg/apis/core/validation/validation.go:ValidatePodSpec
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import Pod, PodSpec, ResourceRequirements, Toleration
from fairlead.apiserver.validation.affinity import check_affinity
from fairlead.apiserver.validation.container import (
    RESTART_POLICIES,
    check_containers,
    check_names,
    check_runnable,
)
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import (
    check_labels,
    check_timestamp,
    dns_subdomain_problems,
)
from fairlead.apiserver.validation.resource import check_pod_level, check_requirements
from fairlead.apiserver.validation.spread import check_spread

INT32_MAX: Final = 2**31 - 1
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS: Final = ("Equal", "Exists")
COMPARISONS: Final = ("Lt", "Gt")


def check_pod(pod: Pod) -> Causes:
    """A stored pod."""
    yield from check_pod_spec("spec", pod.spec)
    yield from check_timestamp("status.startTime", pod.status.start_time)


def check_pod_spec(field: str, spec: PodSpec) -> Causes:
    """The spec of any pod; `field` is where it stands."""
    for key, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        yield from check_containers(f"{field}.{key}", containers, host_network=spec.host_network)
    if spec.resources is not None:
        yield from check_pod_level(f"{field}.resources", spec, spec.resources)
    yield from check_requirements(f"{field}.overhead", ResourceRequirements(limits=spec.overhead))
    yield from check_labels(f"{field}.nodeSelector", spec.node_selector)
    yield from check_affinity(f"{field}.affinity", spec.affinity)
    yield from check_tolerations(f"{field}.tolerations", spec.tolerations)
    yield from check_spread(f"{field}.topologySpreadConstraints", spec.topology_spread_constraints)
    yield from _check_gates(f"{field}.schedulingGates", spec)
    yield from _check_priority(field, spec)
    if spec.restart_policy not in RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    for problem in dns_subdomain_problems(spec.node_name) if spec.node_name else ():
        yield invalid(f"{field}.nodeName", spec.node_name, problem)
    deadline_s = spec.active_deadline_seconds
    if deadline_s is not None and not 1 <= deadline_s <= INT32_MAX:
        why = f"must be between 1 and {INT32_MAX}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", deadline_s, why)


def check_new_pod_spec(field: str, spec: PodSpec) -> Causes:
    """What holds for the spec of a new pod besides."""
    names: dict[str, None] = {}
    yield from check_names(f"{field}.containers", spec.containers, names)
    yield from check_names(f"{field}.initContainers", spec.init_containers, names)
    if spec.scheduling_gates and spec.node_name:
        why = "cannot be set until all schedulingGates have been cleared"
        yield forbidden(f"{field}.nodeName", why)


def check_runnable_pod_spec(field: str, spec: PodSpec) -> Causes:
    """What a kubelet needs to run a pod, and scheduling gets along without."""
    if not spec.containers:
        yield required(f"{field}.containers")
    yield from check_runnable(f"{field}.containers", spec.containers)
    yield from check_runnable(f"{field}.initContainers", spec.init_containers)


def _check_priority(field: str, spec: PodSpec) -> Causes:
    if spec.priority is not None and not -INT32_MAX - 1 <= spec.priority <= INT32_MAX:
        why = f"must be between {-INT32_MAX - 1} and {INT32_MAX}, inclusive"
        yield invalid(f"{field}.priority", spec.priority, why)
    policy = spec.preemption_policy
    if policy and policy not in PREEMPTION_POLICIES:
        yield not_supported(f"{field}.preemptionPolicy", policy, PREEMPTION_POLICIES)


def check_tolerations(field: str, tolerations: Sequence[Toleration]) -> Causes:
    """The tolerations of a pod, or of the pods of a class."""
    for place, toleration in enumerate(tolerations):
        yield from _check_toleration(f"{field}[{place}]", toleration)


def _check_toleration(field: str, toleration: Toleration) -> Causes:
    # upstream: ValidateTolerations; values are reported under operator there
    for problem in label_key_problems(toleration.key) if toleration.key else ():
        yield invalid(f"{field}.key", toleration.key, problem)
    operator = toleration.operator
    if not toleration.key and operator != "Exists":
        why = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        yield invalid(f"{field}.operator", operator, why)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", toleration.effect, why)
    match operator:
        case "" | "Equal":
            problems = label_value_problems(toleration.value)
            if problems:
                yield invalid(f"{field}.operator", toleration.value, ";".join(problems))
        case "Exists":
            if toleration.value:
                why = "value must be empty when `operator` is 'Exists'"
                yield invalid(f"{field}.operator", toleration.value, why)
        case "Lt" | "Gt":
            yield not_supported(f"{field}.operator", operator, (*OPERATORS, *COMPARISONS))
        case _:
            yield not_supported(f"{field}.operator", operator, OPERATORS)
    if toleration.effect and toleration.effect not in TAINT_EFFECTS:
        yield not_supported(f"{field}.effect", toleration.effect, TAINT_EFFECTS)


def _check_gates(field: str, spec: PodSpec) -> Causes:
    names: dict[str, None] = {}
    for place, gate in enumerate(spec.scheduling_gates):
        for problem in label_key_problems(gate.name):
            yield invalid(f"{field}[{place}]", gate.name, problem)
        if gate.name in names:
            yield duplicate(f"{field}[{place}]", gate.name)
        names[gate.name] = None
