"""The checks of the Pod Security Standards: levels `baseline` and `restricted`.

A check returns the details of a violation, or "" if the pod does not violate the standard.

upstream: pod-security-admission/policy/check_*.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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
_SYSCTLS: Final = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ]
)
_SELINUX_TYPES: Final = frozenset(
    ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
)
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


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the standards.

    `reason` is the name of the violated rule in messages. `violation` returns the details of a pod
    spec's violation, or "" if there is none.
    """

    reason: str
    violation: Callable[[Json], str]


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
    names = sorted(
        {name for one in violating for name in _added_capabilities(_context(one), allowed)}
    )
    quoted = ", ".join(f'"{name}"' for name in names)
    return _message(violating, f"must not include {quoted} in securityContext.capabilities.add")


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
    numbers = sorted(set(ports))
    word = f"hostPort{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return f"{_names(violating)} use{'' if len(violating) > 1 else 's'} {word}" if violating else ""


def _privileged(spec: Json) -> str:
    violating = _violating(spec, lambda context: bool(context.get("privileged")))
    return _message(violating, "must not set securityContext.privileged=true")


def _proc_mounts(spec: Json) -> str:
    violating = _violating(spec, lambda context: context.get("procMount", "Default") != "Default")
    kinds = sorted({f'"{_context(one)["procMount"]}"' for one in violating})
    return _message(violating, f"must not set securityContext.procMount to {', '.join(kinds)}")


def _selinux(spec: Json) -> str:
    holders = [("pod", _context(spec))]
    holders += [(_names([one]), _context(one)) for one in _containers(spec)]
    found = []
    for subject, context in holders:
        options = context.get("seLinuxOptions") or {}
        wrong = []
        if options.get("type", "") not in _SELINUX_TYPES:
            wrong.append(f'type "{options["type"]}"')
        wrong += [f"{field} may not be set" for field in ("user", "role") if options.get(field)]
        if wrong:
            found.append(
                f"{subject} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}"
            )
    return "; ".join(found)


def _profile(context: Json) -> str:
    found: str = (context.get("seccompProfile") or {}).get("type", "")
    return found


def _seccomp_baseline(spec: Json) -> str:
    explicit = 'must not set securityContext.seccompProfile.type to "Unconfined"'
    found = [f"pod {explicit}"] if _profile(_context(spec)) == "Unconfined" else []
    violating = _violating(spec, lambda context: _profile(context) == "Unconfined")
    return " and ".join(filter(None, [*found, _message(violating, explicit)]))


def _sysctls(spec: Json) -> str:
    names = (one.get("name", "") for one in _context(spec).get("sysctls") or ())
    return ", ".join(name for name in names if name not in _SYSCTLS)


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
    found = [
        f'volume "{one.get("name", "")}" uses restricted volume type "{kind}"'
        for one in spec.get("volumes") or ()
        for kind in one
        if kind not in _ALLOWED_VOLUMES
    ]
    return ", ".join(found)


def _run_as_non_root(spec: Json) -> str:
    pod = _context(spec).get("runAsNonRoot")
    explicit = _violating(spec, lambda context: context.get("runAsNonRoot") is False)
    unset = [] if pod else _violating(spec, lambda context: context.get("runAsNonRoot") is None)
    found = []
    if pod is False:
        found.append("pod must not set securityContext.runAsNonRoot=false")
    if explicit:
        found.append(_message(explicit, "must not set securityContext.runAsNonRoot=false"))
    if unset:
        found.append(f"pod or {_message(unset, 'must set securityContext.runAsNonRoot=true')}")
    return "; ".join(found)


def _run_as_user(spec: Json) -> str:
    found = ["pod must not set runAsUser=0"] if _context(spec).get("runAsUser") == 0 else []
    violating = _violating(spec, lambda context: context.get("runAsUser") == 0)
    return " and ".join(filter(None, [*found, _message(violating, "must not set runAsUser=0")]))


def _seccomp_restricted(spec: Json) -> str:
    pod = _profile(_context(spec)) in _CONFINED
    explicit = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    unset = [] if pod else _violating(spec, lambda context: not _profile(context))
    wrong = _violating(spec, lambda context: _profile(context) not in ("", *_CONFINED))
    found = [f"pod or {_message(unset, explicit)}"] if unset else []
    return "; ".join(filter(None, [*found, _message(wrong, explicit)]))


BASELINE: Final = (
    Check("non-default capabilities", _non_default_capabilities),
    Check("host namespaces", _host_namespaces),
    Check("hostPath volumes", _host_paths),
    Check("hostPort", _host_ports),
    Check("privileged", _privileged),
    Check("procMount", _proc_mounts),
    Check("seLinuxOptions", _selinux),
    Check("seccompProfile", _seccomp_baseline),
    Check("forbidden sysctls", _sysctls),
)
_OVERRIDDEN: Final = ("non-default capabilities", "seccompProfile")
RESTRICTED: Final = (
    *(check for check in BASELINE if check.reason not in _OVERRIDDEN),
    Check("allowPrivilegeEscalation != false", _allow_privilege_escalation),
    Check("unrestricted capabilities", _capabilities),
    Check("restricted volume types", _volume_types),
    Check("runAsNonRoot != true", _run_as_non_root),
    Check("runAsUser=0", _run_as_user),
    Check("seccompProfile", _seccomp_restricted),
)
CHECKS: Final = {"privileged": (), "baseline": BASELINE, "restricted": RESTRICTED}


def violations(level: str, spec: Json) -> list[tuple[str, str]]:
    """Return (reason, details) of each violation of `level` by a pod spec."""
    found = ((check.reason, check.violation(spec)) for check in CHECKS.get(level, ()))
    return [(reason, details) for reason, details in found if details]
