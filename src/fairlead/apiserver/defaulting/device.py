"""Defaults of device requests.

upstream: pkg/apis/resource/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled


def _device_request(request: Json) -> Json:
    if request["allocationMode"] == "ExactCount":
        return filled(request, {"count": 1})
    return request


DEVICE_RULES: Final[Mapping[str, Rule]] = {
    "v1.ExactDeviceRequest": _device_request,
    "v1.DeviceSubRequest": _device_request,
}
