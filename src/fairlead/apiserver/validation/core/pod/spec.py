"""Validates the specs of pods and pod templates.

`check_pod_spec` applies every rule for a new spec, in upstream's order. `check_scheduled_spec` is
for new and stored pods. This function applies the rules about fields that the scheduler or a
simulated kubelet reads. In simulations, `check_new_scheduled_spec` applies the rules that concern
only new pods. `check_runnable_spec` applies the rules about fields that only a real kubelet needs,
such as images.

upstream: pkg/apis/core/validation/validation.go:ValidatePodSpec
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import (
    Pod,
    PodSpec,
    ResourceList,
    ResourceRequirements,
    SchedulingGroup,
    Toleration,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.core.pod.affinity import check_affinity
from fairlead.apiserver.validation.core.pod.annotation import check_annotations
from fairlead.apiserver.validation.core.pod.container import (
    PodContext,
    check_containers,
    check_init_containers,
    check_names,
    check_runnable,
    check_scheduled_containers,
)
from fairlead.apiserver.validation.core.pod.security import check_pod_security, check_system
from fairlead.apiserver.validation.core.pod.topology_spread import check_spread
from fairlead.apiserver.validation.core.resource import check_pod_level, check_requirements
from fairlead.apiserver.validation.core.volume.claim import check_scheduled_claim
from fairlead.apiserver.validation.core.volume.volume import check_volumes, mountable
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_subdomain,
    dns_subdomain_problems,
)
from fairlead.apiserver.validation.meta.ip import check_ip
from fairlead.apiserver.validation.meta.object_meta import (
    check_annotation_keys,
    check_labels,
    check_timestamp,
)

INT32_MAX: Final = 2**31 - 1
PHASES: Final = values_of("core.v1.PodStatus", "phase")
PREEMPTION_POLICIES: Final = values_of("core.v1.PodSpec", "preemptionPolicy")
TAINT_EFFECTS: Final = values_of("core.v1.Taint", "effect")
_RESTART_POLICIES: Final = values_of("core.v1.PodSpec", "restartPolicy")
OPERATORS: Final = ("Equal", "Exists")
COMPARISONS: Final = ("Lt", "Gt")
SYSTEMS: Final = values_of("core.v1.PodOS", "name")
NAMESERVERS_MAX: Final = 3
SEARCHES_MAX: Final = 32
SEARCH_TEXT_MAX: Final = 2048
_POD_SPEC: Final = "core.v1.PodSpec"
_LISTS: Final = ("containers", "initContainers")
# Fields that share a Linux namespace of the node: JSON name, and upstream's spelling in errors.
_HOST_NAMESPACES: Final = (
    ("hostNetwork", "hostNetwork"),
    ("hostPID", "HostPID"),
    ("hostIPC", "HostIPC"),
)
_CLAIM: Final = ("resourceClaimName", "resourceClaimTemplateName")
_ONE_CLAIM: Final = (
    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
)
_NO_CLAIM: Final = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_FORM: Final = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH: Final = re.compile(_SEARCH_FORM)
_SEARCH_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
    f"used for validation is '{_SEARCH_FORM}')"
)


def check_new_pod(pod: Json, view: Pod) -> Causes:
    """Yield the errors of a new pod."""
    spec = pod["spec"]
    yield from check_annotations("metadata.annotations", pod)
    yield from check_pod_spec("spec", spec, view.spec, pod["metadata"].get("name", ""))
    for key in _LISTS:
        for index, container in enumerate(spec.get(key) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                why = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{key}[{index}].image", image, why)
    yield from check_no_ephemeral_containers(pod)
    yield from check_timestamp("status.startTime", view.status.start_time)


def check_no_ephemeral_containers(pod: Json) -> Causes:
    """Yield an error if the new pod `pod` has ephemeral containers."""
    if pod["spec"].get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def check_scheduled_pod(pod: Pod) -> Causes:
    """Yield the errors in those fields of a new or stored pod that the scheduler reads."""
    yield from check_scheduled_spec("spec", pod.spec)
    phase = pod.status.phase
    if phase and phase not in PHASES:
        yield not_supported("status.phase", phase, PHASES)
    yield from check_timestamp("status.startTime", pod.status.start_time)


def check_changed_pod(pod: Pod) -> Causes:
    """Yield the errors of an updated pod, without comparing it to its previous version."""
    yield from check_scheduled_pod(pod)
    yield from check_new_scheduled_spec("spec", pod.spec)
    yield from check_runnable_spec("spec", pod.spec)


def check_template(field: str, template: Json) -> Causes:
    """Yield the errors of a pod template; `field` is its path."""
    view = template_view(field, template)
    if isinstance(view, Cause):
        yield view
        return
    yield from check_labels(f"{field}.labels", view.metadata.labels)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    yield from check_annotation_keys(f"{field}.annotations", annotations)
    yield from check_annotations(f"{field}.annotations", template)
    yield from check_pod_spec(f"{field}.spec", template["spec"], view.spec)
    yield from check_no_ephemeral_template(field, template)


def check_no_ephemeral_template(field: str, template: Json) -> Causes:
    """Yield an error if the pod template `template` has ephemeral containers."""
    if (template.get("spec") or {}).get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{field}.spec.ephemeralContainers", why)


def template_view(field: str, template: Json) -> Pod | Cause:
    """Return the pod that `template` describes; if it cannot be decoded, return the error."""
    try:
        return decode_as(Pod, template)
    except DecodeError:
        pass  # Most templates have no nulls, and looking for them costs more than decoding.
    try:
        return decode_as(Pod, without_nulls(template))
    except DecodeError as cause:
        return invalid(f"{field}.{cause.field}", "", cause.problem)


def check_pod_spec(field: str, spec: Json, view: PodSpec, pod_name: str = "") -> Causes:
    """Yield all errors of the spec of a new pod or pod template.

    `field` is the path of the spec, and `view` is its typed view. `pod_name` is "" for a pod
    template.
    """
    # The order is that of ValidatePodSpec, because kubectl prints the causes in their order.
    volumes = spec.get("volumes") or []
    claims = spec.get("resourceClaims") or []
    context = PodContext(
        volumes=mountable(volumes),
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        restart_policy=spec.get("restartPolicy", ""),
        grace_period_s=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers") is not False,
        host_network=view.host_network,
    )
    yield from check_volumes(f"{field}.volumes", volumes, pod_name)
    yield from _check_claims(f"{field}.resourceClaims", claims)
    names: dict[str, None] = {}
    main, initial = spec.get("containers") or [], spec.get("initContainers") or []
    yield from check_containers(f"{field}.containers", main, view.containers, context, names)
    views = view.init_containers
    yield from check_init_containers(f"{field}.initContainers", initial, views, context, names)
    if view.resources is not None:
        yield from check_pod_level(f"{field}.resources", view, view.resources)
    yield from _check_restart_policy(field, view)
    yield from check_fields(field, _POD_SPEC, spec, "dnsPolicy")
    yield from check_labels(f"{field}.nodeSelector", view.node_selector)
    yield from check_pod_security(f"{field}.securityContext", spec)
    yield from check_affinity(f"{field}.affinity", view.affinity)
    yield from _check_dns(f"{field}.dnsConfig", spec)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        where = f"{field}.readinessGates[{index}]"
        yield from check_fields(where, "core.v1.PodReadinessGate", gate, "conditionType")
    yield from _check_gates(f"{field}.schedulingGates", view)
    yield from check_spread(f"{field}.topologySpreadConstraints", view.topology_spread_constraints)
    if not context.host_users:
        yield from _check_own_users(field, spec)
    yield from check_fields(field, _POD_SPEC, spec, "serviceAccountName")
    yield from _check_node_name(field, view)
    yield from _check_deadline(field, view)
    yield from check_fields(field, _POD_SPEC, spec, "hostname", "subdomain", "hostnameOverride")
    yield from check_tolerations(f"{field}.tolerations", view.tolerations)
    yield from _check_aliases(f"{field}.hostAliases", spec.get("hostAliases") or [])
    yield from check_fields(field, _POD_SPEC, spec, "priorityClassName", "runtimeClassName")
    yield from _check_priority(field, view)
    yield from check_requirements(f"{field}.overhead", ResourceRequirements(limits=view.overhead))
    yield from _check_system(field, spec)
    yield from _check_scheduling_group(f"{field}.schedulingGroup", view.scheduling_group)
    yield from _check_gated_node_name(field, view)


def _check_scheduled_overhead(field: str, overhead: ResourceList) -> Causes:
    """Yield the errors of a pod's overhead; `field` is the path of the overhead in the pod's YAML.

    Upstream reports the path `spec.overhead.limits` instead (validation.go: validateOverhead).
    """
    for cause in check_requirements(field, ResourceRequirements(limits=overhead)):
        yield replace(cause, field=cause.field.replace(f"{field}.limits", field, 1))


def check_scheduled_spec(field: str, spec: PodSpec) -> Causes:
    """Yield the errors in those fields of `spec` that the scheduler or a simulated kubelet reads.

    `field` is the path of `spec`.
    """
    for key, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        where = f"{field}.{key}"
        yield from check_scheduled_containers(where, containers, host_network=spec.host_network)
    if spec.resources is not None:
        yield from check_pod_level(f"{field}.resources", spec, spec.resources)
    for index, volume in enumerate(spec.volumes):
        if volume.ephemeral is not None:
            where = f"{field}.volumes[{index}].ephemeral.volumeClaimTemplate"
            yield from check_scheduled_claim(where, volume.ephemeral.volume_claim_template)
    yield from _check_scheduled_overhead(f"{field}.overhead", spec.overhead)
    yield from check_labels(f"{field}.nodeSelector", spec.node_selector)
    yield from check_affinity(f"{field}.affinity", spec.affinity)
    yield from check_tolerations(f"{field}.tolerations", spec.tolerations)
    yield from check_spread(f"{field}.topologySpreadConstraints", spec.topology_spread_constraints)
    yield from _check_gates(f"{field}.schedulingGates", spec)
    yield from _check_scheduling_group(f"{field}.schedulingGroup", spec.scheduling_group)
    if spec.priority_class_name:
        yield from check_subdomain(f"{field}.priorityClassName", spec.priority_class_name)
    yield from _check_priority(field, spec)
    yield from _check_restart_policy(field, spec)
    yield from _check_node_name(field, spec)
    yield from _check_deadline(field, spec)


def check_new_scheduled_spec(field: str, spec: PodSpec) -> Causes:
    """Check the rules that apply only to the specs of new pods; yield the errors."""
    names: dict[str, None] = {}
    yield from check_names(f"{field}.containers", spec.containers, names)
    yield from check_names(f"{field}.initContainers", spec.init_containers, names)
    yield from _check_gated_node_name(field, spec)


def check_runnable_spec(field: str, spec: PodSpec) -> Causes:
    """Yield the errors in those fields of a pod's spec that only kubelets read."""
    if not spec.containers:
        yield required(f"{field}.containers")
    yield from check_runnable(f"{field}.containers", spec.containers)
    yield from check_runnable(f"{field}.initContainers", spec.init_containers)


def _check_gated_node_name(field: str, spec: PodSpec) -> Causes:
    if spec.scheduling_gates and spec.node_name:
        why = "cannot be set until all schedulingGates have been cleared"
        yield forbidden(f"{field}.nodeName", why)


def _check_restart_policy(field: str, spec: PodSpec) -> Causes:
    if spec.restart_policy not in _RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", spec.restart_policy, _RESTART_POLICIES)


def _check_node_name(field: str, spec: PodSpec) -> Causes:
    for problem in dns_subdomain_problems(spec.node_name) if spec.node_name else ():
        yield invalid(f"{field}.nodeName", spec.node_name, problem)


def _check_deadline(field: str, spec: PodSpec) -> Causes:
    deadline_s = spec.active_deadline_seconds
    if deadline_s is not None and not 1 <= deadline_s <= INT32_MAX:
        why = f"must be between 1 and {INT32_MAX}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", deadline_s, why)


def _check_priority(field: str, spec: PodSpec) -> Causes:
    if spec.priority is not None and not -INT32_MAX - 1 <= spec.priority <= INT32_MAX:
        why = f"must be between {-INT32_MAX - 1} and {INT32_MAX}, inclusive"
        yield invalid(f"{field}.priority", spec.priority, why)
    policy = spec.preemption_policy
    if policy and policy not in PREEMPTION_POLICIES:
        yield not_supported(f"{field}.preemptionPolicy", policy, PREEMPTION_POLICIES)


def check_tolerations(field: str, tolerations: Sequence[Toleration]) -> Causes:
    """Yield the errors of the tolerations of a pod or of a RuntimeClass."""
    for index, toleration in enumerate(tolerations):
        yield from _check_toleration(f"{field}[{index}]", toleration)


def _check_toleration(field: str, toleration: Toleration) -> Causes:
    # upstream: validation.go:ValidateTolerations, which reports values under the path of operator
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
    for index, gate in enumerate(spec.scheduling_gates):
        for problem in label_key_problems(gate.name):
            yield invalid(f"{field}[{index}]", gate.name, problem)
        if gate.name in names:
            yield duplicate(f"{field}[{index}]", gate.name)
        names[gate.name] = None


def _check_scheduling_group(field: str, group: SchedulingGroup | None) -> Causes:
    """Yield the errors of schedulingGroup, which refers to a PodGroup of scheduling.k8s.io."""
    if group is None:
        return
    name = group.pod_group_name
    if name is None:
        yield invalid(field, "", "must specify one of: `podGroupName`")
        return
    for problem in dns_subdomain_problems(name):
        yield invalid(f"{field}.podGroupName", name, problem)


def _check_system(field: str, spec: Json) -> Causes:
    system = (spec.get("os") or {}).get("name")
    if system == "":
        yield required(f"{field}.os.name", "cannot be empty")
    elif system is not None and system not in SYSTEMS:
        yield not_supported(f"{field}.os", system, SYSTEMS)
    yield from check_system(field, spec)


def _check_own_users(field: str, spec: Json) -> Causes:
    """Yield an error for each Linux namespace that the pod shares with its node.

    The pod has `hostUsers: false`, so it must not have hostNetwork, hostPID or hostIPC.
    """
    for key, shown in _HOST_NAMESPACES:
        if spec.get(key):
            yield forbidden(f"{field}.{shown}", "when `hostUsers` is false")


def _check_dns(field: str, spec: Json) -> Causes:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(field, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{field}.nameservers", why)
            return
    config = config or {}
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > NAMESERVERS_MAX:
        why = f"must not have more than {NAMESERVERS_MAX} nameservers"
        yield invalid(f"{field}.nameservers", servers, why)
    for index, server in enumerate(servers):
        yield from check_ip(f"{field}.nameservers[{index}]", server)
    yield from _check_searches(f"{field}.searches", searches)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{field}.options[{index}]", "must not be empty")


def _check_searches(field: str, searches: list[str]) -> Causes:
    if len(searches) > SEARCHES_MAX:
        yield invalid(field, searches, f"must not have more than {SEARCHES_MAX} search paths")
    if len(" ".join(searches)) > SEARCH_TEXT_MAX:
        why = (
            f"must not have more than {SEARCH_TEXT_MAX} characters (including spaces) in the "
            "search list"
        )
        yield invalid(field, searches, why)
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        if search != "." and not _SEARCH.fullmatch(domain):
            yield invalid(f"{field}[{index}]", domain, _SEARCH_RULE)


def _check_aliases(field: str, aliases: list[Json]) -> Causes:
    for index, alias in enumerate(aliases):
        yield from check_ip(f"{field}[{index}].ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from check_subdomain(f"{field}[{index}].hostnames[{number}]", name)


def _check_claims(field: str, claims: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for index, claim in enumerate(claims):
        where = f"{field}[{index}]"
        name = claim.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif name in names:
            yield duplicate(f"{where}.name", name)
        else:
            yield from check_dns_label(f"{where}.name", name)
        names[name] = None
        shown = {"Name": name, **{key[0].upper() + key[1:]: claim.get(key) for key in _CLAIM}}
        stated = [key for key in _CLAIM if claim.get(key) is not None]
        if len(stated) > 1:
            yield invalid(where, shown, _ONE_CLAIM)
        elif not stated:
            yield invalid(where, shown, _NO_CLAIM)
        for key in stated:
            yield from check_subdomain(f"{where}.{key}", claim[key])
