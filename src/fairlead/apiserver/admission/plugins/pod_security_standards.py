"""What the Pod Security Standards ask of a pod, check by check.

A check gives the details of what it objects to, "" if nothing. `baseline` keeps pods from known
ways out of their containers, `restricted` asks for today's hardening as well.

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
_VOLUMES: Final = frozenset(
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
    """`reason` is told of a pod to which `objection` has details."""

    reason: str
    objection: Callable[[Json], str]


def _containers(spec: Json) -> Iterator[Json]:
    for key in _LISTS:
        yield from spec.get(key) or ()


def _context(holder: Json) -> Json:
    found: Json = holder.get("securityContext") or {}
    return found


def _names(containers: Sequence[Json]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    quoted = ", ".join(f'"{container.get("name", "")}"' for container in containers)
    return f"container{'s' if len(containers) > 1 else ''} {quoted}" if containers else ""


def _bad(spec: Json, is_bad: Callable[[Json], bool]) -> list[Json]:
    return [container for container in _containers(spec) if is_bad(_context(container))]


def _must(containers: Sequence[Json], what: str) -> str:
    return f"{_names(containers)} {what}" if containers else ""


# --- baseline ------------------------------------------------------------------------------


def _added(context: Json, allowed: frozenset[str]) -> list[str]:
    added = (context.get("capabilities") or {}).get("add") or ()
    return [name for name in added if name not in allowed]


def _non_default_capabilities(spec: Json) -> str:
    return _forbidden_capabilities(spec, _CAPABILITIES)


def _forbidden_capabilities(spec: Json, allowed: frozenset[str]) -> str:
    bad = _bad(spec, lambda context: bool(_added(context, allowed)))
    names = sorted({name for one in bad for name in _added(_context(one), allowed)})
    quoted = ", ".join(f'"{name}"' for name in names)
    return _must(bad, f"must not include {quoted} in securityContext.capabilities.add")


def _host_namespaces(spec: Json) -> str:
    fields = ("hostNetwork", "hostPID", "hostIPC")
    return ", ".join(f"{field}=true" for field in fields if spec.get(field))


def _host_paths(spec: Json) -> str:
    names = [f'"{one.get("name", "")}"' for one in spec.get("volumes") or () if "hostPath" in one]
    return f"volume{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""


def _host_ports(spec: Json) -> str:
    bad, ports = [], []
    for container in _containers(spec):
        found = [p["hostPort"] for p in container.get("ports") or () if p.get("hostPort")]
        if found:
            bad.append(container)
            ports += found
    numbers = sorted(set(ports))
    word = f"hostPort{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return f"{_names(bad)} use{'' if len(bad) > 1 else 's'} {word}" if bad else ""


def _privileged(spec: Json) -> str:
    bad = _bad(spec, lambda context: bool(context.get("privileged")))
    return _must(bad, "must not set securityContext.privileged=true")


def _proc_mounts(spec: Json) -> str:
    bad = _bad(spec, lambda context: context.get("procMount", "Default") != "Default")
    kinds = sorted({f'"{_context(one)["procMount"]}"' for one in bad})
    return _must(bad, f"must not set securityContext.procMount to {', '.join(kinds)}")


def _selinux(spec: Json) -> str:
    holders = [("pod", _context(spec))]
    holders += [(_names([one]), _context(one)) for one in _containers(spec)]
    found = []
    for called, context in holders:
        options = context.get("seLinuxOptions") or {}
        wrong = []
        if options.get("type", "") not in _SELINUX_TYPES:
            wrong.append(f'type "{options["type"]}"')
        wrong += [f"{field} may not be set" for field in ("user", "role") if options.get(field)]
        if wrong:
            found.append(
                f"{called} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}"
            )
    return "; ".join(found)


def _profile(context: Json) -> str:
    found: str = (context.get("seccompProfile") or {}).get("type", "")
    return found


def _unconfined(spec: Json) -> str:
    said = 'must not set securityContext.seccompProfile.type to "Unconfined"'
    found = [f"pod {said}"] if _profile(_context(spec)) == "Unconfined" else []
    bad = _bad(spec, lambda context: _profile(context) == "Unconfined")
    return " and ".join(filter(None, [*found, _must(bad, said)]))


def _sysctls(spec: Json) -> str:
    named = (one.get("name", "") for one in _context(spec).get("sysctls") or ())
    return ", ".join(name for name in named if name not in _SYSCTLS)


# --- restricted ----------------------------------------------------------------------------


def _escalation(spec: Json) -> str:
    bad = _bad(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    return _must(bad, "must set securityContext.allowPrivilegeEscalation=false")


def _capabilities(spec: Json) -> str:
    bad = _bad(spec, lambda c: "ALL" not in ((c.get("capabilities") or {}).get("drop") or ()))
    dropped = _must(bad, 'must set securityContext.capabilities.drop=["ALL"]')
    added = _forbidden_capabilities(spec, frozenset(("NET_BIND_SERVICE",)))
    return "; ".join(filter(None, (dropped, added)))


def _volume_types(spec: Json) -> str:
    found = [
        f'volume "{one.get("name", "")}" uses restricted volume type "{kind}"'
        for one in spec.get("volumes") or ()
        for kind in one
        if kind not in _VOLUMES
    ]
    return ", ".join(found)


def _may_be_root(spec: Json) -> str:
    pod = _context(spec).get("runAsNonRoot")
    said = _bad(spec, lambda context: context.get("runAsNonRoot") is False)
    unsaid = [] if pod else _bad(spec, lambda context: context.get("runAsNonRoot") is None)
    found = []
    if pod is False:
        found.append("pod must not set securityContext.runAsNonRoot=false")
    if said:
        found.append(_must(said, "must not set securityContext.runAsNonRoot=false"))
    if unsaid:
        found.append(f"pod or {_must(unsaid, 'must set securityContext.runAsNonRoot=true')}")
    return "; ".join(found)


def _root(spec: Json) -> str:
    found = ["pod must not set runAsUser=0"] if _context(spec).get("runAsUser") == 0 else []
    bad = _bad(spec, lambda context: context.get("runAsUser") == 0)
    return " and ".join(filter(None, [*found, _must(bad, "must not set runAsUser=0")]))


def _unprofiled(spec: Json) -> str:
    pod = _profile(_context(spec)) in _CONFINED
    said = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    unsaid = [] if pod else _bad(spec, lambda context: not _profile(context))
    wrong = _bad(spec, lambda context: _profile(context) not in ("", *_CONFINED))
    found = [f"pod or {_must(unsaid, said)}"] if unsaid else []
    return "; ".join(filter(None, [*found, _must(wrong, said)]))


BASELINE: Final = (
    Check("non-default capabilities", _non_default_capabilities),
    Check("host namespaces", _host_namespaces),
    Check("hostPath volumes", _host_paths),
    Check("hostPort", _host_ports),
    Check("privileged", _privileged),
    Check("procMount", _proc_mounts),
    Check("seLinuxOptions", _selinux),
    Check("seccompProfile", _unconfined),
    Check("forbidden sysctls", _sysctls),
)
_OVERRIDDEN: Final = ("non-default capabilities", "seccompProfile")
RESTRICTED: Final = (
    *(check for check in BASELINE if check.reason not in _OVERRIDDEN),
    Check("allowPrivilegeEscalation != false", _escalation),
    Check("unrestricted capabilities", _capabilities),
    Check("restricted volume types", _volume_types),
    Check("runAsNonRoot != true", _may_be_root),
    Check("runAsUser=0", _root),
    Check("seccompProfile", _unprofiled),
)
CHECKS: Final = {"privileged": (), "baseline": BASELINE, "restricted": RESTRICTED}


def objections(level: str, spec: Json) -> list[tuple[str, str]]:
    """Reasons and details of what a level has against a pod with `spec`."""
    found = ((check.reason, check.objection(spec)) for check in CHECKS.get(level, ()))
    return [(reason, details) for reason, details in found if details]
