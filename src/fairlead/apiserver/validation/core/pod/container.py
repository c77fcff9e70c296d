"""Validates the containers of pods.

`check_containers` and `check_init_containers` apply all rules for new containers, in upstream's
order. Simulations use `check_scheduled_containers`, which applies only the rules that affect
placement.

upstream: pkg/apis/core/validation/validation.go:validateContainerCommon, validateContainers,
validateInitContainers, validateContainerPorts
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.facts import facts_of, values_of
from fairlead.api.json import Json
from fairlead.api.objects import Container, ContainerPort
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.core.environment import (
    check_environment,
    check_environment_sources,
)
from fairlead.apiserver.validation.core.pod.security import check_container_security
from fairlead.apiserver.validation.core.resource import check_requirements
from fairlead.apiserver.validation.core.volume.volume import check_devices, check_mounts
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_field, check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_port,
    check_port_number,
    dns_label_problems,
    port_name_problems,
)

_PROTOCOLS: Final = values_of("core.v1.ContainerPort", "protocol")
_RESTART_POLICIES: Final = values_of("core.v1.Container", "restartPolicy")
_RESIZE_POLICY: Final = facts_of("core.v1.ContainerResizePolicy").fields
_RESTART_RULE: Final = facts_of("core.v1.ContainerRestartRule").fields
_CLAIMS_SHOWN_MAX: Final = 64
_SIDECARS_ONLY: Final = "may not be set for init containers without restartPolicy=Always"


class PodContext(Struct, frozen=True, kw_only=True):
    """The parts of a pod that are needed to check its containers.

    `volumes` maps names to the mountable volumes. `claims` contains the names of the pod's
    resourceClaims.
    """

    volumes: Mapping[str, Json]
    claims: frozenset[str]
    restart_policy: str
    grace_period_s: int | None
    host_users: bool
    host_network: bool


def check_containers(
    field: str,
    containers: list[Json],
    views: Sequence[Container],
    pod: PodContext,
    names: dict[str, None],
) -> Causes:
    """Yield all errors of a pod's main containers, and add the containers' names to `names`.

    `views` are the typed views of `containers`. A container's name is a duplicate if it is already
    in `names`.
    """
    if not containers:
        yield required(field)
    for index, (container, view) in enumerate(zip(containers, views, strict=True)):
        where = f"{field}[{index}]"
        yield from _check_name_and_image(where, view)
        yield from check_container(where, container, view, pod)
        yield from _check_unused_name(where, view, names)
        yield from check_probes(where, container, pod.grace_period_s)
        yield from _check_restart(where, container)
    ports: dict[str, None] = {}
    for place, container in enumerate(containers):
        yield from _check_host_ports(f"{field}[{place}]", container, ports)


def check_init_containers(
    field: str,
    containers: list[Json],
    views: Sequence[Container],
    pod: PodContext,
    names: dict[str, None],
) -> Causes:
    """Yield all errors of init containers, and add the containers' names to `names`."""
    for index, (container, view) in enumerate(zip(containers, views, strict=True)):
        where = f"{field}[{index}]"
        yield from _check_name_and_image(where, view)
        yield from check_container(where, container, view, pod)
        yield from _check_unused_name(where, view, names)
        yield from _check_restart(where, container)
        yield from _check_host_ports(f"{field}[0]", container, {})
        if container.get("restartPolicy") == "Always":
            yield from check_probes(where, container, pod.grace_period_s)
            continue
        for key in ("lifecycle", *PROBES):
            if container.get(key) is not None:
                yield forbidden(f"{where}.{key}", _SIDECARS_ONLY)


def check_container(field: str, container: Json, view: Container | None, pod: PodContext) -> Causes:
    """Apply the rules that are the same for all containers of a pod; yield the errors.

    `view` is None for ephemeral containers.
    """
    yield from check_fields(field, "core.v1.Container", container, "terminationMessagePolicy")
    yield from _check_port_names(f"{field}.ports", container.get("ports") or [])
    for index, port in enumerate(view.ports if view else ()):
        yield from _check_port(f"{field}.ports[{index}]", port, host_network=pod.host_network)
    yield from check_environment(f"{field}.env", container.get("env") or [])
    yield from check_environment_sources(f"{field}.envFrom", container.get("envFrom") or [])
    yield from check_mounts(f"{field}.volumeMounts", container, pod.volumes)
    yield from check_devices(f"{field}.volumeDevices", container, pod.volumes)
    yield from check_fields(field, "core.v1.Container", container, "imagePullPolicy")
    if view:
        yield from check_requirements(f"{field}.resources", view.resources)
    claims = (container.get("resources") or {}).get("claims") or []
    yield from _check_claims(f"{field}.resources.claims", claims, pod.claims)
    yield from _check_resizing(f"{field}.resizePolicy", container.get("resizePolicy") or [], pod)
    context = container.get("securityContext") or {}
    where = f"{field}.securityContext"
    yield from check_container_security(where, context, host_users=pod.host_users)


def _check_port_names(field: str, ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for index, port in enumerate(ports):
        name = port.get("name", "")
        if not name:
            continue
        problems = port_name_problems(name)
        for problem in problems:
            yield invalid(f"{field}[{index}].name", name, problem)
        if not problems and name in names:
            yield duplicate(f"{field}[{index}].name", name)
        names[name] = None


def _check_host_ports(field: str, container: Json, taken: dict[str, None]) -> Causes:
    for index, port in enumerate(container.get("ports") or ()):
        if not port.get("hostPort"):
            continue
        shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
        if shown in taken:
            yield duplicate(f"{field}.ports[{index}].hostPort", shown)
        taken[shown] = None


def _check_claims(field: str, claims: list[Json], known: frozenset[str]) -> Causes:
    """Yield the errors of a container's resource claims; `known` are the claims of its pod."""
    # upstream: validation.go:validateResourceClaimNames
    seen: Counter[str] = Counter()
    shown = ", ".join(sorted(known)[:_CLAIMS_SHOWN_MAX]) if claims else ""
    for index, claim in enumerate(claims):
        where = f"{field}[{index}]"
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required(where)
            continue
        if name in seen:
            yield duplicate(where, name)
        else:
            yield from _check_use(where, name, request, seen)
        if name not in known:
            named = f": {shown}" if known else " which is empty"
            yield Cause(
                "FieldValueNotFound",
                f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{named}',
                where,
            )


def _check_use(field: str, name: str, request: str, seen: Counter[str]) -> Causes:
    """Yield the errors of one use of a claim by a container, and count the use in `seen`.

    If `request` is "", the container uses the whole claim `name`. Otherwise, the container uses
    only the request `request` of the claim. The key `name` of `seen` counts the uses of the whole
    claim. The key `name/request` counts the uses of that request. The key `name/` counts the
    different requests of the claim that are used.
    """
    key = f"{name}/{request}" if request else name
    if request:
        yield from check_dns_label(f"{field}.request", request)
    if key in seen:
        yield duplicate(field, key)
    elif not request:
        for _ in range(seen[f"{name}/"]):
            yield duplicate(field, name)
    if request and key not in seen:
        seen[f"{name}/"] += 1
    seen[key] += 1


def _check_resizing(field: str, policies: list[Json], pod: PodContext) -> Causes:
    # upstream: validation.go:validateResizePolicy, most of whose errors have the path of the list
    seen: dict[str, None] = {}
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{field}[{index}]", name)
        seen[name] = None
        yield from check_field(field, _RESIZE_POLICY["resourceName"], name)
        yield from check_field(field, _RESIZE_POLICY["restartPolicy"], restart)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            yield invalid(field, restart, why)


def _check_restart(field: str, container: Json) -> Causes:
    """Yield the errors of the restart policy and restart rules of one container."""
    yield from _check_restart_policy(field, container.get("restartPolicy") or "")
    rules = container.get("restartPolicyRules") or []
    if rules and container.get("restartPolicy") is None:
        why = "must specify restartPolicy when restart rules are used"
        yield required(f"{field}.restartPolicy", why)
    yield from check_fields(field, "core.v1.Container", container, "restartPolicyRules")
    for index, rule in enumerate(rules):
        where = f"{field}.restartPolicyRules[{index}]"
        yield from check_fields(where, "core.v1.ContainerRestartRule", rule, "action")
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
        else:
            on_exit = "core.v1.ContainerRestartRuleOnExitCodes"
            yield from check_fields(f"{where}.exitCodes", on_exit, codes, "operator")


def check_scheduled_containers(
    field: str, containers: Sequence[Container], *, host_network: bool
) -> Causes:
    """Yield the errors of the containers' ports, resources, restart policies and restart rules.

    `host_network` is the hostNetwork of the pod.
    """
    for index, container in enumerate(containers):
        where = f"{field}[{index}]"
        for number, port in enumerate(container.ports):
            place_of_port = f"{where}.ports[{number}]"
            yield from _check_port(place_of_port, port, host_network=host_network)
        yield from check_requirements(f"{where}.resources", container.resources)
        yield from _check_restart_policy(where, container.restart_policy)
        for number, rule in enumerate(container.restart_policy_rules):
            action = f"{where}.restartPolicyRules[{number}].action"
            yield from check_field(action, _RESTART_RULE["action"], rule.action)


def check_names(field: str, containers: Sequence[Container], names: dict[str, None]) -> Causes:
    """Yield the errors of the containers' names, and add the names to `names`.

    A container's name is a duplicate if it is already in `names`.
    """
    for index, container in enumerate(containers):
        yield from _check_unused_name(f"{field}[{index}]", container, names)
        for problem in dns_label_problems(container.name) if container.name else ():
            yield invalid(f"{field}[{index}].name", container.name, problem)


def check_runnable(field: str, containers: Sequence[Container]) -> Causes:
    """Yield an error for each missing name or image; a kubelet needs both to start a container."""
    for index, container in enumerate(containers):
        if not container.name:
            yield required(f"{field}[{index}].name")
        if not container.image:
            yield required(f"{field}[{index}].image")


def _check_name_and_image(field: str, container: Container) -> Causes:
    if not container.name:
        yield required(f"{field}.name")
    for problem in dns_label_problems(container.name) if container.name else ():
        yield invalid(f"{field}.name", container.name, problem)
    if not container.image:
        yield required(f"{field}.image")


def _check_unused_name(field: str, container: Container, names: dict[str, None]) -> Causes:
    if container.name in names:
        yield duplicate(f"{field}.name", container.name)
    if container.name:
        names[container.name] = None


def _check_port(field: str, port: ContainerPort, *, host_network: bool) -> Causes:
    if not port.container_port:
        yield required(f"{field}.containerPort")
    else:
        yield from check_port_number(f"{field}.containerPort", port.container_port)
    if port.host_port:
        yield from check_port_number(f"{field}.hostPort", port.host_port)
        if host_network and port.host_port != port.container_port:
            why = "must match `containerPort` when `hostNetwork` is true"
            yield invalid(f"{field}.hostPort", port.host_port, why)
    if port.protocol not in _PROTOCOLS:
        yield not_supported(f"{field}.protocol", port.protocol, _PROTOCOLS)


def _check_restart_policy(field: str, policy: str) -> Causes:
    if policy and policy not in _RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", policy, _RESTART_POLICIES)


# --- probes --------------------------------------------------------------------------------------

# upstream: pkg/apis/core/validation/validation.go:validateProbe, validateHandler, validateLifecycle

NO_HANDLER: Final = "must specify a handler type"
ONE_HANDLER: Final = "may not specify more than 1 handler type"
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS: Final = ("postStart", "preStop")
_OF_PROBES: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold", "terminationGracePeriodSeconds",
)  # fmt: skip
_HEADER_FORM: Final = "[-A-Za-z0-9]+"
_HEADER: Final = re.compile(_HEADER_FORM)
_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
    f"'X-Header-Name', regex used for validation is '{_HEADER_FORM}')"
)


def check_probes(field: str, container: Json, grace_period_s: int | None) -> Causes:
    """Yield the errors of all hooks and probes of a container.

    `grace_period_s` is the terminationGracePeriodSeconds of the pod; a hook must not sleep longer.
    """
    lifecycle = container.get("lifecycle") or {}
    for key in HOOKS:
        if lifecycle.get(key) is not None:
            where = f"{field}.lifecycle.{key}"
            yield from _check_handler(where, lifecycle[key], _OF_HOOKS, grace_period_s)
    for key in PROBES:
        if container.get(key) is not None:
            yield from _check_probe(f"{field}.{key}", container[key])


def _check_probe(field: str, probe: Json) -> Causes:
    yield from _check_handler(field, probe, _OF_PROBES, None)
    yield from check_fields(field, "core.v1.Probe", probe, *_COUNTS)
    grace_s, where = probe.get("terminationGracePeriodSeconds"), "terminationGracePeriodSeconds"
    if field.endswith("readinessProbe"):
        if grace_s is not None:
            yield invalid(f"{field}.{where}", grace_s, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")


def _check_handler(
    field: str, handler: Json, known: tuple[str, ...], grace_period_s: int | None
) -> Causes:
    """Yield the errors of the handler of a probe or hook.

    The handler must have exactly one of the actions in `known`. If `grace_period_s` is not None, a
    `sleep` action must not take longer than this period.
    """
    stated = [key for key in known if handler.get(key) is not None]
    for key in stated[:1]:
        yield from _check_action(f"{field}.{key}", key, handler[key], grace_period_s)
    for key in stated[1:]:
        yield forbidden(f"{field}.{key}", ONE_HANDLER)
    if not stated:
        yield required(field, NO_HANDLER)


def _check_action(field: str, key: str, action: Json, grace_period_s: int | None) -> Causes:
    match key:
        case "exec":
            yield from check_fields(field, "core.v1.ExecAction", action, "command")
        case "httpGet":
            yield from _check_get(field, action)
        case "tcpSocket":
            yield from check_port(f"{field}.port", action["port"])
        case "grpc":
            yield from check_fields(field, "core.v1.GRPCAction", action, "port")
        case _:
            pause_s = action.get("seconds", 0)
            if grace_period_s is not None and not 0 <= pause_s <= grace_period_s:
                why = (
                    "must be non-negative and less than terminationGracePeriodSeconds "
                    f"({grace_period_s})"
                )
                yield invalid(field, pause_s, why)


def _check_get(field: str, action: Json) -> Causes:
    yield from check_fields(field, "core.v1.HTTPGetAction", action, "path")
    yield from check_port(f"{field}.port", action["port"])
    yield from check_fields(field, "core.v1.HTTPGetAction", action, "scheme")
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not _HEADER.fullmatch(name):
            yield invalid(f"{field}.httpHeaders", name, _HEADER_RULE)
