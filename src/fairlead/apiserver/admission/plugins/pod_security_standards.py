"""The checks of the Pod Security Standards: levels `baseline` and `restricted`.

The standards have the version numbers of Kubernetes. Each check, allowed value and exemption
applies to a certain minor version and to all later versions.

Differs from upstream: Fairlead does not check AppArmor profiles. It checks seccomp profiles in
fields, but not in annotations.

upstream: pod-security-admission/policy/check_*.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
# upstream: check_capabilities_baseline.go:capabilities_allowed_1_0
_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
# The allowed values, each with the first minor version of the standards that allows it.
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
_SELINUX_TYPES: Final = {
    "": 0,
    "container_t": 0,
    "container_init_t": 0,
    "container_kvm_t": 0,
    "container_engine_t": 31,
}
_ALLOWED_VOLUMES: Final = frozenset(
    [
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_CONFINED: Final = ("RuntimeDefault", "Localhost")
_WINDOWS_EXEMPT: Final = 25  # from this minor version on
NEWEST: Final = 1_000  # the minor version of "latest", above all versions of checks
_NEVER: Final = NEWEST + 1

Violation = Callable[[Json, int], str]


class Check(Struct, frozen=True):
    """A check that applies to the minor version `since` of the standards and to later versions.

    `reason` is the name of the violated rule in messages. `violation` takes a pod spec and a minor
    version, and returns a description of the violation, or "" if there is none. At the level
    `restricted`, this check replaces the `baseline` check whose `reason` equals `overrides`.
    """

    reason: str
    violation: Violation
    since: int = 0
    overrides: str = ""


def _always(violation: Callable[[Json], str]) -> Violation:
    """Return a check that calls `violation` for every version of the standards."""
    return lambda spec, _minor: violation(spec)


def _not_on_windows(violation: Callable[[Json], str]) -> Violation:
    """Return a check that calls `violation`; from version 1.25 on, it exempts Windows pods."""

    def checked(spec: Json, minor: int) -> str:
        is_windows = (spec.get("os") or {}).get("name") == "windows"
        return "" if is_windows and minor >= _WINDOWS_EXEMPT else violation(spec)

    return checked


def _containers(spec: Json) -> Iterator[Json]:
    for key in _LISTS:
        yield from spec.get(key) or ()


def _context(holder: Json) -> Json:
    found: Json = holder.get("securityContext") or {}
    return found


def _names(containers: Sequence[Json]) -> str:
    """Return the quoted names of containers, such as `containers "a", "b"`."""
    quoted = ", ".join(f'"{container.get("name", "")}"' for container in containers)
    return f"container{'s' if len(containers) > 1 else ''} {quoted}" if containers else ""


def _setters(containers: Sequence[Json], *, is_pod: bool) -> str:
    """Return a text that names the pod and containers that set a field: `pod and container "a"`.

    `containers` are the containers that set the field. `is_pod` is True if the pod's own
    securityContext sets the field. The text is "" if nothing sets the field.
    """
    return " and ".join(filter(None, ("pod" if is_pod else "", _names(containers))))


def _quoted(values: Iterable[str]) -> str:
    """Return the distinct `values`, quoted and sorted."""
    return ", ".join(f'"{value}"' for value in sorted(set(values)))


def _violating(spec: Json, violates: Callable[[Json], bool]) -> list[Json]:
    return [container for container in _containers(spec) if violates(_context(container))]


def _message(containers: Sequence[Json], requirement: str) -> str:
    return f"{_names(containers)} {requirement}" if containers else ""


# --- baseline ------------------------------------------------------------------------------


def _added_capabilities(context: Json, allowed: frozenset[str]) -> list[str]:
    added = (context.get("capabilities") or {}).get("add") or ()
    return [name for name in added if name not in allowed]


def _non_default_capabilities(spec: Json) -> str:
    return _forbidden_capabilities(spec, _CAPABILITIES)


def _forbidden_capabilities(spec: Json, allowed: frozenset[str]) -> str:
    violating = _violating(spec, lambda context: bool(_added_capabilities(context, allowed)))
    names = (name for one in violating for name in _added_capabilities(_context(one), allowed))
    return _message(
        violating, f"must not include {_quoted(names)} in securityContext.capabilities.add"
    )


def _host_namespaces(spec: Json) -> str:
    fields = ("hostNetwork", "hostPID", "hostIPC")
    return ", ".join(f"{field}=true" for field in fields if spec.get(field))


def _host_paths(spec: Json) -> str:
    names = [f'"{one.get("name", "")}"' for one in spec.get("volumes") or () if "hostPath" in one]
    return f"volume{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""


def _host_ports(spec: Json) -> str:
    violating, ports = [], []
    for container in _containers(spec):
        found = [p["hostPort"] for p in container.get("ports") or () if p.get("hostPort")]
        if found:
            violating.append(container)
            ports += found
    numbers = sorted(set(map(str, ports)))  # sorted as strings, like upstream
    word = f"hostPort{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
    return f"{_names(violating)} use{'' if len(violating) > 1 else 's'} {word}" if violating else ""


def _privileged(spec: Json) -> str:
    violating = _violating(spec, lambda context: bool(context.get("privileged")))
    return _message(violating, "must not set securityContext.privileged=true")


def _proc_mounts(spec: Json) -> str:
    violating = _violating(spec, lambda context: context.get("procMount", "Default") != "Default")
    kinds = _quoted(_context(one)["procMount"] for one in violating)
    return _message(violating, f"must not set securityContext.procMount to {kinds}")


def _selinux(spec: Json, minor: int) -> str:
    types: list[str] = []
    fields: set[str] = set()

    def violates(context: Json) -> bool:
        options = context.get("seLinuxOptions") or {}
        kind = options.get("type", "")
        wrong = {field for field in ("user", "role") if options.get(field)}
        is_wrong_type = _SELINUX_TYPES.get(kind, _NEVER) > minor
        types.extend([kind] if is_wrong_type else [])
        fields.update(wrong)
        return is_wrong_type or bool(wrong)

    setters = _setters(_violating(spec, violates), is_pod=violates(_context(spec)))
    word = "types" if len(set(types)) > 1 else "type"
    found = [f"{word} {_quoted(types)}"] if types else []
    found += [f"{field} may not be set" for field in ("user", "role") if field in fields]
    forbidden = f"set forbidden securityContext.seLinuxOptions: {'; '.join(found)}"
    return f"{setters} {forbidden}" if setters else ""


def _profile(context: Json) -> str:
    found: str = (context.get("seccompProfile") or {}).get("type", "")
    return found


def _seccomp_baseline(spec: Json) -> str:
    def violates(context: Json) -> bool:
        return _profile(context) not in ("", *_CONFINED)

    is_pod, containers = violates(_context(spec)), _violating(spec, violates)
    holders = [*([spec] if is_pod else []), *containers]
    profiles = _quoted(_profile(_context(one)) for one in holders)
    problem = f"must not set securityContext.seccompProfile.type to {profiles}"
    return f"{_setters(containers, is_pod=is_pod)} {problem}" if holders else ""


def _sysctls(spec: Json, minor: int) -> str:
    names = (one.get("name", "") for one in _context(spec).get("sysctls") or ())
    return ", ".join(name for name in names if _SYSCTLS.get(name, _NEVER) > minor)


def _host_processes(spec: Json) -> str:
    def violates(context: Json) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    setters = _setters(_violating(spec, violates), is_pod=violates(_context(spec)))
    requirement = "must not set securityContext.windowsOptions.hostProcess=true"
    return f"{setters} {requirement}" if setters else ""


def _probe_hosts(spec: Json) -> str:
    hosts = {c["name"]: found for c in _containers(spec) if (found := set(_handler_hosts(c)))}
    if not hosts:
        return ""
    violating = [{"name": name} for name in sorted(hosts)]
    quoted = [f'"{host}"' for host in sorted(set().union(*hosts.values()))]
    uses = "use" if len(violating) > 1 else "uses"
    word = "probe or lifecycle hosts" if len(quoted) > 1 else "probe or lifecycle host"
    return f"{_names(violating)} {uses} {word} {', '.join(quoted)}"


def _handler_hosts(container: Json) -> Iterator[str]:
    """Yield the hosts to which a container's probes and lifecycle handlers connect."""
    lifecycle = container.get("lifecycle") or {}
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    handlers = [container.get(one) for one in probes]
    handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
    for handler in filter(None, handlers):
        for kind in ("httpGet", "tcpSocket"):
            host = (handler.get(kind) or {}).get("host", "")
            if host:
                yield host


# --- restricted ----------------------------------------------------------------------------


def _allow_privilege_escalation(spec: Json) -> str:
    violating = _violating(
        spec, lambda context: context.get("allowPrivilegeEscalation") is not False
    )
    return _message(violating, "must set securityContext.allowPrivilegeEscalation=false")


def _capabilities(spec: Json) -> str:
    violating = _violating(
        spec, lambda c: "ALL" not in ((c.get("capabilities") or {}).get("drop") or ())
    )
    dropped = _message(violating, 'must set securityContext.capabilities.drop=["ALL"]')
    added = _forbidden_capabilities(spec, frozenset(("NET_BIND_SERVICE",)))
    return "; ".join(filter(None, (dropped, added)))


def _volume_types(spec: Json) -> str:
    kinds = [
        (one.get("name", ""), kind)
        for one in spec.get("volumes") or ()
        for kind in one
        if kind not in _ALLOWED_VOLUMES
    ]
    if not kinds:
        return ""
    names = ", ".join(f'"{name}"' for name, _ in kinds)
    types = {kind for _, kind in kinds}
    volumes = f"volumes {names} use" if len(kinds) > 1 else f"volume {names} uses"
    word = "types" if len(types) > 1 else "type"
    return f"{volumes} restricted volume {word} {_quoted(types)}"


def _run_as_non_root(spec: Json) -> str:
    pod = _context(spec).get("runAsNonRoot")
    explicit = _violating(spec, lambda context: context.get("runAsNonRoot") is False)
    setters = _setters(explicit, is_pod=pod is False)
    if setters or pod:
        problem = "must not set securityContext.runAsNonRoot=false"
        return f"{setters} {problem}" if setters else ""
    unset = _violating(spec, lambda context: context.get("runAsNonRoot") is None)
    wanted = "must set securityContext.runAsNonRoot=true"
    return f"pod or {_message(unset, wanted)}" if unset else ""


def _run_as_user(spec: Json) -> str:
    def violates(context: Json) -> bool:
        return context.get("runAsUser") == 0

    setters = _setters(_violating(spec, violates), is_pod=violates(_context(spec)))
    return f"{setters} must not set runAsUser=0" if setters else ""


def _seccomp_restricted(spec: Json) -> str:
    explicit = _seccomp_baseline(spec)
    if explicit or _profile(_context(spec)):
        return explicit
    unset = _violating(spec, lambda context: not _profile(context))
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"pod or {_message(unset, wanted)}" if unset else ""


# In the order of upstream's check ids.
BASELINE: Final[tuple[Check, ...]] = (
    Check("non-default capabilities", _always(_non_default_capabilities)),
    Check("host namespaces", _always(_host_namespaces)),
    Check("hostPath volumes", _always(_host_paths)),
    Check("hostPort", _always(_host_ports)),
    Check("probe or lifecycle host", _always(_probe_hosts), since=34),
    Check("privileged", _always(_privileged)),
    Check("procMount", _always(_proc_mounts)),
    Check("seLinuxOptions", _selinux),
    Check("seccompProfile", _always(_seccomp_baseline), since=19),
    Check("forbidden sysctls", _sysctls),
    Check("hostProcess", _always(_host_processes)),
)
# The checks that `restricted` adds to those of `baseline`.
RESTRICTED: Final[tuple[Check, ...]] = (
    Check("allowPrivilegeEscalation != false", _not_on_windows(_allow_privilege_escalation), 8),
    Check(
        "unrestricted capabilities",
        _not_on_windows(_capabilities),
        since=22,
        overrides="non-default capabilities",
    ),
    Check("restricted volume types", _always(_volume_types)),
    Check("runAsNonRoot != true", _always(_run_as_non_root)),
    Check("runAsUser=0", _always(_run_as_user), since=23),
    Check(
        "seccompProfile",
        _not_on_windows(_seccomp_restricted),
        since=19,
        overrides="seccompProfile",
    ),
)
LEVELS: Final = ("privileged", "baseline", "restricted")


def violations(level: str, minor: int, spec: Json) -> list[tuple[str, str]]:
    """Return (reason, details) for each check that the pod spec `spec` violates.

    `level` is one of `LEVELS`. `minor` is the minor version of the standards (36 for 1.36), or
    `NEWEST` for the latest version.
    """
    found = ((check.reason, check.violation(spec, minor)) for check in _checks(level, minor))
    return [(reason, details) for reason, details in found if details]


@cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    """Return the checks that apply at `level` in version 1.`minor` of the standards."""
    baseline = () if level == "privileged" else BASELINE
    added = RESTRICTED if level == "restricted" else ()
    added = tuple(check for check in added if check.since <= minor)
    overridden = {check.overrides for check in added}
    kept = (one for one in baseline if one.since <= minor and one.reason not in overridden)
    return (*kept, *added)
