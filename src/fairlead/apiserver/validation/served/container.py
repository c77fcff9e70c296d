"""Containers, as far as no scheduler cares: ports' names, mounts, images, resizing.

upstream: pkg/apis/core/validation/validation.go:validateContainerCommon, validateContainers,
validateInitContainers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.served.environment import (
    check_environment,
    check_environment_sources,
)
from fairlead.apiserver.validation.served.form import (
    check_dns_label,
    port_name_problems,
)
from fairlead.apiserver.validation.served.probe import PROBES, check_probes
from fairlead.apiserver.validation.served.security import check_container_security
from fairlead.apiserver.validation.served.volume import check_devices, check_mounts

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
RESIZABLE: Final = ("cpu", "memory")
RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
RULES_MAX: Final = 20
_CLAIMS_SHOWN_MAX: Final = 64
_SIDECARS_ONLY: Final = "may not be set for init containers without restartPolicy=Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContext:
    """What of a pod its containers depend on."""

    volumes: Mapping[str, Json]
    claims: frozenset[str]
    restart_policy: str
    grace_period_s: int | None
    host_users: bool


def check_containers(field: str, containers: list[Json], pod: PodContext) -> Causes:
    """The containers that run as long as the pod does."""
    for place, container in enumerate(containers):
        where = f"{field}[{place}]"
        yield from check_container(where, container, pod)
        yield from check_probes(where, container, pod.grace_period_s)
        yield from _check_restart(where, container)
    ports: dict[str, None] = {}
    for place, container in enumerate(containers):
        yield from _check_host_ports(f"{field}[{place}]", container, ports)


def check_init_containers(field: str, containers: list[Json], pod: PodContext) -> Causes:
    """The containers that run before; those that go on are sidecars."""
    for place, container in enumerate(containers):
        where = f"{field}[{place}]"
        yield from check_container(where, container, pod)
        yield from _check_restart(where, container)
        yield from _check_host_ports(f"{field}[0]", container, {})
        if container.get("restartPolicy") == "Always":
            yield from check_probes(where, container, pod.grace_period_s)
            continue
        for key in ("lifecycle", *PROBES):
            if container.get(key) is not None:
                yield forbidden(f"{where}.{key}", _SIDECARS_ONLY)


def check_container(field: str, container: Json, pod: PodContext) -> Causes:
    """Any container."""
    said = container.get("terminationMessagePolicy", "")
    yield from _check_word(f"{field}.terminationMessagePolicy", said, MESSAGE_POLICIES)
    yield from _check_port_names(f"{field}.ports", container.get("ports") or [])
    yield from check_environment(f"{field}.env", container.get("env") or [])
    yield from check_environment_sources(f"{field}.envFrom", container.get("envFrom") or [])
    yield from check_mounts(f"{field}.volumeMounts", container, pod.volumes)
    yield from check_devices(f"{field}.volumeDevices", container, pod.volumes)
    policy = container.get("imagePullPolicy", "")
    yield from _check_word(f"{field}.imagePullPolicy", policy, PULL_POLICIES)
    claims = (container.get("resources") or {}).get("claims") or []
    yield from _check_claims(f"{field}.resources.claims", claims, pod.claims)
    yield from _check_resizing(f"{field}.resizePolicy", container.get("resizePolicy") or [], pod)
    context = container.get("securityContext") or {}
    where = f"{field}.securityContext"
    yield from check_container_security(where, context, host_users=pod.host_users)


def _check_word(field: str, word: str, known: tuple[str, ...]) -> Causes:
    if not word:
        yield required(field)
    elif word not in known:
        yield not_supported(field, word, known)


def _check_port_names(field: str, ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for place, port in enumerate(ports):
        name = port.get("name", "")
        if not name:
            continue
        problems = port_name_problems(name)
        for problem in problems:
            yield invalid(f"{field}[{place}].name", name, problem)
        if not problems and name in names:
            yield duplicate(f"{field}[{place}].name", name)
        names[name] = None


def _check_host_ports(field: str, container: Json, taken: dict[str, None]) -> Causes:
    for place, port in enumerate(container.get("ports") or ()):
        if not port.get("hostPort"):
            continue
        shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
        if shown in taken:
            yield duplicate(f"{field}.ports[{place}].hostPort", shown)
        taken[shown] = None


def _check_claims(field: str, claims: list[Json], known: frozenset[str]) -> Causes:
    """Devices of the pod that a container uses."""
    # upstream: validateResourceClaimNames there
    seen: Counter[str] = Counter()
    shown = ", ".join(sorted(known)[:_CLAIMS_SHOWN_MAX]) if claims else ""
    for place, claim in enumerate(claims):
        where = f"{field}[{place}]"
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
    """`seen` are uses so far: `name` or `name/request`, and how many requests `name/` has."""
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
    # upstream: validateResizePolicy there, which does not say which one it means
    seen: dict[str, None] = {}
    for place, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{field}[{place}]", name)
        seen[name] = None
        yield from _check_word(field, name, RESIZABLE)
        yield from _check_word(field, restart, RESIZE_POLICIES)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            yield invalid(field, restart, why)


def _check_restart(field: str, container: Json) -> Causes:
    """When a container alone is started again."""
    rules = container.get("restartPolicyRules") or []
    if rules and container.get("restartPolicy") is None:
        why = "must specify restartPolicy when restart rules are used"
        yield required(f"{field}.restartPolicy", why)
    if len(rules) > RULES_MAX:
        text = f"Too many: {len(rules)}: must have at most {RULES_MAX} items"
        yield Cause("FieldValueTooMany", text, f"{field}.restartPolicyRules")
    for place, rule in enumerate(rules):
        where = f"{field}.restartPolicyRules[{place}]"
        if rule.get("action") not in RESTART_ACTIONS:
            yield not_supported(f"{where}.action", rule.get("action", ""), RESTART_ACTIONS)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
        elif codes.get("operator") not in ("In", "NotIn"):
            operator = codes.get("operator", "")
            yield not_supported(f"{where}.exitCodes.operator", operator, ("In", "NotIn"))
