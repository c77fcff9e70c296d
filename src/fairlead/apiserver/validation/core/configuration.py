"""Validates ConfigMaps and Secrets: their keys, size and immutability.

upstream: pkg/apis/core/validation/validation.go:Validate{ConfigMap,Secret}{,Update}
"""

from __future__ import annotations

import base64
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.schema.gojson.json_text import JsonError, parse_json
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import config_key_problems, too_long

SIZE_MAX: Final = 1024 * 1024
SEALED: Final = "field is immutable when `immutable` is set"
_NEEDED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def check_config_map(obj: Json) -> Causes:
    """Yield the errors of a new or changed ConfigMap."""
    texts, binaries = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in texts:
        for problem in config_key_problems(key):
            yield invalid(f"data[{key}]", key, problem)
        if key in binaries:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binaries:
        for problem in config_key_problems(key):
            yield invalid(f"binaryData[{key}]", key, problem)
    size = sum(len(text.encode()) for text in texts.values())
    if size + sum(len(base64.b64decode(text)) for text in binaries.values()) > SIZE_MAX:
        yield too_long("[]", SIZE_MAX)


def check_config_map_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes the data of an immutable ConfigMap or makes it mutable."""
    yield from _check_seal(old, new, ("data", "binaryData"))


def check_secret(obj: Json) -> Causes:
    """Yield the errors of a new or changed Secret."""
    data = obj.get("data") or {}
    for key in data:
        for problem in config_key_problems(key):
            yield invalid(f"data[{key}]", key, problem)
    if sum(len(base64.b64decode(text)) for text in data.values()) > SIZE_MAX:
        yield too_long("data", SIZE_MAX)
    yield from _check_secret_type(obj, data)


def _check_secret_type(obj: Json, data: Json) -> Causes:
    type_ = obj.get("type", "")
    if type_ == "kubernetes.io/service-account-token":
        if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif type_ == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED.get(type_, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key in _JSON_KEYS:
            yield from _check_json(f"data[{key}]", base64.b64decode(data[key]))


def _check_json(field: str, content: bytes) -> Causes:
    """Yield an error if `content` is not JSON. The error omits `content`, which is secret."""
    try:
        parse_json(content)
    except JsonError as cause:
        yield invalid(field, "<secret contents redacted>", str(cause))


def check_secret_update(old: Json, new: Json) -> Causes:
    """Yield errors if an immutable Secret becomes mutable or its data changes."""
    yield from _check_seal(old, new, ("data",))


def _check_seal(old: Json, new: Json, fields: tuple[str, ...]) -> Causes:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", SEALED)
    for field in fields:
        if (old.get(field) or {}) != (new.get(field) or {}):
            yield forbidden(field, SEALED)
