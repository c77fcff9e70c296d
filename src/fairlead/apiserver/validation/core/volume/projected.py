"""Validates volumes that consist of files: ConfigMap, Secret, downward API and projected volumes.

upstream: pkg/apis/core/validation/validation.go:validateKeyToPath, validateDownwardAPIVolumeFile,
validateProjectionSources
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.core.environment import (
    check_field_reference,
    check_resource_reference,
)
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import check_local_path, label_selector
from fairlead.apiserver.validation.meta.selector import check_label_selector

MODE_MAX: Final = 0o777
MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
TOKEN_LIFE_MIN_S: Final = 600
TOKEN_LIFE_MAX_S: Final = 2**32
FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_PROJECTED: Final = (
    "secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle",
)  # fmt: skip
_CONFLICTING_PATHS: Final = "conflicting duplicate paths"


def _check_file_path(field: str, path: str) -> Causes:
    """Yield the errors of a file's path, which must be relative.

    The path must not begin with `..`, because the names of the kubelet's own files begin with `..`.
    """
    if not path:
        yield required(field)
    yield from check_local_path(field, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(field, path, "must not start with '..'")


def _check_mode(field: str, mode: int | None) -> Causes:
    if mode is not None and not 0 <= mode <= MODE_MAX:
        yield invalid(field, mode, MODE_RULE)


def check_keyed_files(field: str, source: Json) -> Causes:
    """Yield the errors of the items and file modes of a ConfigMap or Secret volume."""
    yield from _check_mode(f"{field}.defaultMode", source.get("defaultMode"))
    yield from _check_items(field, source)


def _check_items(field: str, source: Json) -> Causes:
    for index, item in enumerate(source.get("items") or ()):
        where = f"{field}.items[{index}]"
        yield from check_fields(where, "core.v1.KeyToPath", item, "key")
        yield from _check_file_path(f"{where}.path", item.get("path", ""))
        yield from _check_mode(f"{where}.mode", item.get("mode"))


def check_downward(field: str, source: Json) -> Causes:
    """Yield the errors of a downward API volume."""
    yield from _check_mode(f"{field}.defaultMode", source.get("defaultMode"))
    for item in source.get("items") or ():
        yield from _check_downward_file(
            field, item
        )  # As in upstream, the paths of errors do not contain the index of the item.


def _check_downward_file(field: str, item: Json) -> Causes:
    yield from _check_file_path(f"{field}.path", item.get("path", ""))
    own, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if own is not None:
        yield from check_field_reference(f"{field}.fieldRef", own, FIELDS)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(field, "resource", why)
    elif resource is not None:
        yield from check_resource_reference(f"{field}.resourceFieldRef", resource, of_volume=True)
    else:
        yield required(field, "one of fieldRef and resourceFieldRef is required")
    yield from _check_mode(f"{field}.mode", item.get("mode"))


def check_projected(field: str, projected: Json) -> Causes:
    """Yield the errors of a projected volume. The paths of its sources must not conflict."""
    yield from _check_mode(f"{field}.defaultMode", projected.get("defaultMode"))
    paths: dict[str, None] = {}
    for index, source in enumerate(projected.get("sources") or ()):
        where = f"{field}.sources[{index}]"
        for key in _PROJECTED:
            if source.get(key) is not None:
                yield from _check_projection(field, where, key, source[key])
                for path, shown in _written(key, source[key]):
                    if path in paths:
                        yield invalid(field, shown, _CONFLICTING_PATHS)
                    paths[path] = None
        if sum(source.get(key) is not None for key in _PROJECTED) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _check_projection(field: str, where: str, key: str, source: Json) -> Causes:
    place = f"{where}.{key}"
    match key:
        case "secret" | "configMap":
            if not source.get("name"):
                yield required(f"{place}.name")
            yield from _check_items(place, source)
        case "downwardAPI":
            for item in source.get("items") or ():
                yield from _check_downward_file(place, item)
        case "serviceAccountToken":
            yield from check_token_life(
                f"{place}.expirationSeconds", source.get("expirationSeconds", 0)
            )
            yield from _check_file_path(f"{field}.path", source.get("path", ""))
        case _:
            yield from _check_trust(place, source)


def check_token_life(field: str, life_s: int) -> Causes:
    """Yield the errors of `life_s`, the lifetime of a service account token in seconds."""
    if life_s < TOKEN_LIFE_MIN_S:
        yield invalid(field, life_s, "may not specify a duration less than 10 minutes")
    if life_s > TOKEN_LIFE_MAX_S:
        yield invalid(field, life_s, "may not specify a duration larger than 2^32 seconds")


def _check_trust(field: str, source: Json) -> Causes:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        yield invalid(field, source, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required(f"{field}.name", "must be a valid object name")
        if source.get("labelSelector") is not None:
            why = "labelSelector must be unset if name is specified"
            yield invalid(f"{field}.labelSelector", source["labelSelector"], why)
    elif signer is not None:
        if not signer:
            yield required(f"{field}.signerName", "must be a valid signer name")
        selector = label_selector(source.get("labelSelector"))
        yield from check_label_selector(f"{field}.labelSelector", selector)
    else:
        yield required(field, "either name or signerName must be specified")
    yield from _check_file_path(f"{field}.path", source.get("path", ""))


def _written(key: str, source: Json) -> Iterator[tuple[str, str]]:
    """Yield (path, quoted) for each item of `source`, and for the file of a clusterTrustBundle.

    `quoted` is the value that the error message shows if an earlier file of the volume has the same
    path. For an item of a ConfigMap or Secret, `quoted` is the name of the ConfigMap or Secret. In
    all other cases, `quoted` equals `path`. `key` is the type of `source`, such as `configMap`.
    """
    if key == "clusterTrustBundle":
        yield source.get("path", ""), source.get("path", "")
    for item in source.get("items") or ():
        path = item.get("path", "")
        if path:
            yield path, path if key == "downwardAPI" else source.get("name", "")
