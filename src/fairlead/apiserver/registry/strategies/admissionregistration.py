"""The strategies of admissionregistration.k8s.io.

upstream: pkg/registry/admissionregistration/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy

_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATION: Final = ResourceStrategy(allow_unconditional_update=False)

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    f"mutatingwebhookconfigurations.{_GROUP}": _CONFIGURATION,
    f"validatingwebhookconfigurations.{_GROUP}": _CONFIGURATION,
    f"mutatingadmissionpolicies.{_GROUP}": _CONFIGURATION,
    f"mutatingadmissionpolicybindings.{_GROUP}": _CONFIGURATION,
    f"validatingadmissionpolicies.{_GROUP}": ResourceStrategy(
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        reset_fields={"status": (("metadata",),)},
    ),
    f"validatingadmissionpolicybindings.{_GROUP}": _CONFIGURATION,
}
