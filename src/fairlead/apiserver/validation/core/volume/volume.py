"""Validates volumes of pods, volume mounts and volume devices.

upstream: pkg/apis/core/validation/validation.go:ValidateVolumes, ValidateVolumeMounts,
ValidateVolumeDevices
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.validation.core.volume.claim import check_embedded_claim
from fairlead.apiserver.validation.core.volume.source import check_inline
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_local_path,
    dns_label_problems,
    dns_subdomain_problems,
    not_found,
)

_encode: Final = msgspec.json.Encoder().encode

SOURCES_MAX: Final = 2_048
SOURCE_BYTES_MAX: Final = 2_048
_BLOCK_ONLY: Final = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def check_volumes(field: str, volumes: list[Json], pod_name: str = "") -> Causes:
    """Yield the errors of a pod's volumes. `pod_name` is "" for pod templates."""
    names: dict[str, None] = {}
    for index, volume in enumerate(volumes):
        where = f"{field}[{index}]"
        name = volume.get("name", "")
        yield from _check_source(where, volume, pod_name)
        if not name:
            yield required(f"{where}.name")
        elif dns_label_problems(name):
            for problem in dns_label_problems(name):
                yield invalid(f"{where}.name", name, problem)
        elif name in names:
            yield duplicate(f"{where}.name", name)
        names[name] = None


def mountable(volumes: list[Json]) -> dict[str, Json]:
    """Return the valid volumes, keyed by name. Only valid volumes can be mounted."""
    sound: dict[str, Json] = {}
    for volume in volumes:
        name = volume.get("name", "")
        wrong = any(True for _ in _check_source("", volume, ""))
        if name and name not in sound and not wrong and not dns_label_problems(name):
            sound[name] = volume
    return sound


def _is_sound(volume: Json) -> bool:
    """Return whether the volume's source is valid and at most SOURCE_BYTES_MAX bytes long.

    The results for sources up to this length are cached. If the result is False, the caller checks
    the source without the cache.
    """
    text = _encode({key: value for key, value in volume.items() if key != "name"})
    return len(text) <= SOURCE_BYTES_MAX and _is_known_sound(text)


@lru_cache(maxsize=SOURCES_MAX)
def _is_known_sound(text: bytes) -> bool:
    return not any(True for _ in check_inline("", msgspec.json.decode(text)))


def _check_source(field: str, volume: Json, pod_name: str) -> Causes:
    if not _is_sound(volume):
        yield from check_inline(field, volume)
    source, name = volume.get("ephemeral"), volume.get("name", "")
    if source is None or sum(isinstance(value, dict) for value in volume.values()) > 1:
        return
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required(f"{field}.ephemeral.volumeClaimTemplate")
    else:
        yield from check_embedded_claim(f"{field}.ephemeral.volumeClaimTemplate", template)
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        for problem in dns_subdomain_problems(claim):
            yield invalid(f"{field}.name", name, f'PVC name "{claim}": {problem}')


def check_mounts(field: str, container: Json, volumes: Mapping[str, Json]) -> Causes:
    """Yield the errors of a container's volume mounts."""
    paths: dict[str, None] = {}
    devices = container.get("volumeDevices") or ()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{field}[{index}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found(f"{where}.name", name)
        if not path:
            yield required(f"{where}.mountPath")
        if path in paths:
            yield invalid(f"{where}.mountPath", path, "must be unique")
        paths[path] = None
        if any(name == device.get("name") for device in devices):
            yield invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if any(path == device.get("devicePath") for device in devices):
            why = "must not already exist as a path in volumeDevices"
            yield invalid(f"{where}.mountPath", path, why)
        yield from _check_below(field, where, mount)
        yield from _check_propagation(field, container, mount)


def _check_below(field: str, where: str, mount: Json) -> Causes:
    """Yield the errors of subPath and subPathExpr of one mount.

    Only one of these two fields may be set, and its value must be a path inside the volume. `field`
    is the path of the list of mounts, and `where` is the path of this mount. As in upstream, some
    errors are reported under `field` and others under `where`.
    """
    stated = [key for key in ("subPath", "subPathExpr") if mount.get(key)]
    for key in stated:
        if key == "subPathExpr" and len(stated) > 1:
            why = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{where}.{key}", mount[key], why)
        yield from check_local_path(f"{field}.{key}", mount[key])


def _check_propagation(field: str, container: Json, mount: Json) -> Causes:
    spread, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    yield from check_fields(field, "core.v1.VolumeMount", mount, "mountPropagation")
    if spread is not None:
        privileged = (container.get("securityContext") or {}).get("privileged")
        if spread == "Bidirectional" and not privileged:
            why = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{field}.mountPropagation", why)
    where = f"{field}.recursiveReadOnly"
    yield from check_fields(field, "core.v1.VolumeMount", mount, "recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(where, "may only be specified when readOnly is true")
        if spread not in (None, "None"):
            why = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(where, why)


def check_devices(field: str, container: Json, volumes: Mapping[str, Json]) -> Causes:
    """Yield the errors of a container's volume devices."""
    names: dict[str, None] = {}
    paths: dict[str, None] = {}
    mounts = container.get("volumeMounts") or []
    for index, device in enumerate(container.get("volumeDevices") or ()):
        where = f"{field}[{index}]"
        name, path = device.get("name", ""), device.get("devicePath", "")
        yield from _check_device_name(f"{where}.name", name, names, volumes)
        if not path:
            yield required(f"{where}.devicePath")
        if path in paths:
            yield invalid(f"{where}.devicePath", path, "must be unique")
        if ".." in path.split("/"):
            yield invalid(f"{where}.devicePath", path, "can not contain backsteps ('..')")
        else:
            paths[path] = None
        yield from _check_not_mounted(where, name, path, mounts)
        if name:
            names[name] = None


def _check_device_name(
    field: str, name: str, names: Mapping[str, None], volumes: Mapping[str, Json]
) -> Causes:
    volume = volumes.get(name)
    if not name:
        yield required(field)
    if name in names:
        yield invalid(field, name, "must be unique")
    if volume is None:
        yield not_found(field, name)
    elif not any(volume.get(key) for key in ("persistentVolumeClaim", "ephemeral")):
        yield invalid(field, name, _BLOCK_ONLY)


def _check_not_mounted(where: str, name: str, path: str, mounts: list[Json]) -> Iterator[Any]:
    if any(name == mount.get("name") for mount in mounts):
        yield invalid(f"{where}.name", name, "must not already exist in volumeMounts")
    if any(path == mount.get("mountPath") for mount in mounts):
        why = "must not already exist as a path in volumeMounts"
        yield invalid(f"{where}.devicePath", path, why)
