"""The strategy of APIServices.

upstream: kube-aggregator/pkg/registry/apiservice/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import (
    ONLY_MANAGED_FIELDS,
    PreparationContext,
    ResourceStrategy,
)

# The condition of an APIService that this server serves itself.
LOCAL: Final[Mapping[str, str]] = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def _prepare_for_create(service: Json, _: PreparationContext) -> Json:
    if service["spec"].get("service") is not None:
        return service
    since = service["metadata"]["creationTimestamp"]
    return {**service, "status": {"conditions": [{**LOCAL, "lastTransitionTime": since}]}}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "apiservices.apiregistration.k8s.io": ResourceStrategy(
        prepare_for_create=_prepare_for_create,
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        storage_prefix="apiregistration.k8s.io/apiservices",
    )
}
