"""Validates the security contexts of pods and containers.

upstream: pkg/apis/core/validation/validation.go:ValidateSecurityContext,
validatePodSpecSecurityContext
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    INT32_MAX,
    check_local_path,
    too_long,
)

PROFILE_PATH_MAX: Final = 4095
SYSCTL_LENGTH_MAX: Final = 253
SPEC_KIB_MAX: Final = 64
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_FORM: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL: Final = re.compile(_SYSCTL_FORM)
# The prefixes of namespaced sysctls. A pod must not set them if it shares the host's namespace.
_HOST_SYSCTLS: Final = (
    ("hostNetwork", ("net.", "net/")),
    ("hostIPC", ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")),
)
_CONTEXT: Final = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup",
    "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount",
    "seccompProfile", "appArmorProfile",
)  # fmt: skip
_GO_NAMES: Final = {"seLinuxOptions": "SELinuxOptions"}
# Fields that exist on Linux only, in upstream's order.
_LINUX_OF_POD: Final = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID",
    "hostIPC", "securityContext.seccompProfile", "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy", "securityContext.sysctls", "shareProcessNamespace",
    "securityContext.runAsUser", "securityContext.runAsGroup",
    "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)  # fmt: skip
_LINUX: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
    "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser",
    "runAsGroup",
)  # fmt: skip
_CONTEXT_OF_POD: Final = "core.v1.PodSecurityContext"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def check_container_security(field: str, context: Json, *, host_users: bool) -> Causes:
    """Yield the errors of a container's securityContext.

    `host_users` is False if the pod has `hostUsers: false`, and True otherwise.
    """
    names = ("runAsUser", "runAsGroup", "procMount")
    yield from check_fields(field, "core.v1.SecurityContext", context, *names)
    mount = context.get("procMount")
    if mount == "Unmasked" and host_users:
        yield invalid(f"{field}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _check_seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        yield from _check_escalation(field, context)
    yield from _check_windows(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _check_app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))


def _check_escalation(field: str, context: Json) -> Causes:
    shown = {_GO_NAMES.get(key, key[0].upper() + key[1:]): context.get(key) for key in _CONTEXT}
    if context.get("privileged"):
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(field, shown, why)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid(field, shown, why)


def check_pod_security(field: str, spec: Json) -> Causes:
    """Yield the errors of a pod's securityContext."""
    context = spec.get("securityContext") or {}
    yield from check_fields(field, _CONTEXT_OF_POD, context, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= INT32_MAX:
            why = f"must be between 0 and {INT32_MAX}, inclusive"
            yield invalid(f"{field}.supplementalGroups[{index}]", group, why)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{field}.shareProcessNamespace", spec["shareProcessNamespace"], why)
    yield from _check_sysctls(f"{field}.sysctls", spec, context.get("sysctls") or [])
    yield from check_fields(field, _CONTEXT_OF_POD, context, "fsGroupChangePolicy")
    yield from _check_seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    yield from _check_windows(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _check_app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))
    names = ("supplementalGroupsPolicy", "seLinuxChangePolicy")
    yield from check_fields(field, _CONTEXT_OF_POD, context, *names)


def _check_sysctls(field: str, spec: Json, settings: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for index, setting in enumerate(settings):
        where = f"{field}[{index}].name"
        name = setting.get("name", "")
        if not name:
            yield required(where)
        elif len(name) > SYSCTL_LENGTH_MAX or not _SYSCTL.fullmatch(name):
            why = (
                f"must have at most {SYSCTL_LENGTH_MAX} characters and match regex ^{_SYSCTL_FORM}$"
            )
            yield invalid(where, name, why)
        elif name in names:
            yield duplicate(where, name)
        for shared, beginnings in _HOST_SYSCTLS:
            if spec.get(shared) and name.startswith(beginnings):
                yield invalid(where, name, f"may not be specified when '{shared}' is true")
        names[name] = None


def _check_seccomp(field: str, profile: Json | None) -> Causes:
    if profile is None:
        return
    type_, path = profile.get("type", ""), profile.get("localhostProfile")
    yield from check_fields(field, "core.v1.SeccompProfile", profile, "type")
    if type_ == "Localhost" and path is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    elif type_ == "Localhost":
        yield from check_local_path(f"{field}.localhostProfile", path or "")
    elif path is not None:
        shown = {"Type": type_, "LocalhostProfile": path}
        why = "can only be set when seccomp type is Localhost"
        yield invalid(f"{field}.localhostProfile", shown, why)


def _check_app_armor(field: str, profile: Json | None) -> Causes:
    if profile is None:
        return
    type_, path = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{field}.localhostProfile"
    needed = "must be set when AppArmor type is Localhost"
    problems = tuple(check_fields(field, "core.v1.AppArmorProfile", profile, "type"))
    yield from problems
    if problems:
        return
    if type_ != "Localhost":
        if path is not None:
            yield invalid(where, path, "can only be set when AppArmor type is Localhost")
    elif path is None or not path:
        yield required(where, needed)
    else:
        if path.strip() != path:
            yield invalid(where, path, "must not be padded with whitespace")
        if len(path) > PROFILE_PATH_MAX:
            yield too_long(where, PROFILE_PATH_MAX)


def _check_windows(field: str, options: Json | None) -> Causes:
    if options is None:
        return
    name = "gmsaCredentialSpecName"
    yield from check_fields(field, "core.v1.WindowsSecurityContextOptions", options, name)
    credentials = options.get("gmsaCredentialSpec")
    where = f"{field}.gmsaCredentialSpec"
    if credentials == "":
        yield invalid(where, "", "gmsaCredentialSpec cannot be an empty string")
    elif credentials is not None and len(credentials) > SPEC_KIB_MAX * 1024:
        why = f"gmsaCredentialSpec size must be under {SPEC_KIB_MAX} KiB"
        yield invalid(where, credentials, why)
    user = options.get("runAsUserName")
    if user == "":
        why = "runAsUserName cannot be an empty string"
        yield invalid(f"{field}.runAsUserName", "", why)


def check_system(field: str, spec: Json) -> Causes:
    """Yield an error for each field of `spec` that the pod's operating system does not support."""
    match (spec.get("os") or {}).get("name"):
        case "linux":
            yield from _check_linux(field, spec)
        case "windows":
            yield from _check_not_linux(field, spec)
        case _:
            return


def _check_linux(field: str, spec: Json) -> Causes:
    why = "windows options cannot be set for a linux pod"
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        yield forbidden(f"{field}.securityContext.windowsOptions", why)
    for where, container in _containers(field, spec):
        if (container.get("securityContext") or {}).get("windowsOptions") is not None:
            yield forbidden(f"{where}.securityContext.windowsOptions", why)


def _check_not_linux(field: str, spec: Json) -> Causes:
    why = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    for path in _LINUX_OF_POD:
        inner = path.removeprefix("securityContext.")
        value = spec.get(path) if inner == path else context.get(inner)
        if value is not None and value is not False and value != []:
            yield forbidden(f"{field}.{path}", why)
    for where, container in _containers(field, spec):
        own = container.get("securityContext") or {}
        for key in _LINUX:
            if own.get(key) is not None:
                yield forbidden(f"{where}.securityContext.{key}", why)


def _containers(field: str, spec: Json) -> list[tuple[str, Json]]:
    return [
        (f"{field}.{key}[{index}]", container)
        for key in _LISTS
        for index, container in enumerate(spec.get(key) or ())
    ]
