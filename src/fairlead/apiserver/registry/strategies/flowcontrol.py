"""The strategies of flowcontrol.apiserver.k8s.io.

upstream: pkg/registry/flowcontrol/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy

_STRATEGY: Final = ResourceStrategy(
    metadata_with_status=ONLY_MANAGED_FIELDS, reset_fields={"status": (("metadata",),)}
)

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "flowschemas.flowcontrol.apiserver.k8s.io": _STRATEGY,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _STRATEGY,
}
