"""Claims of devices, and definitions of custom kinds.

upstream: pkg/apis/resource/v1/defaults.go,
apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced


def _device_request(request: Json) -> Json:
    request = filled(request, {"allocationMode": "ExactCount"})
    if request["allocationMode"] == "ExactCount":
        return filled(request, {"count": 1})
    return request


def _definition_spec(spec: Json) -> Json:
    names = spec["names"]
    kind = names.get("kind", "")
    if kind:
        names = filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})
    conversion = filled(spec.get("conversion") or {}, {"strategy": "None"})
    return replaced(replaced(spec, "names", names), "conversion", conversion)


CLAIM_RULES: Final[Mapping[str, Rule]] = {
    "v1.ExactDeviceRequest": _device_request,
    "v1.DeviceSubRequest": _device_request,
    "v1.DeviceToleration": lambda toleration: filled(toleration, {"operator": "Equal"}),
    "v1.CustomResourceDefinitionSpec": _definition_spec,
}
