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
from fairlead.apiserver.validation.apiregistration import check_api_service
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

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
        rules=KindRules(accepts_any_finalizer=True, new=json_check(check_api_service)),
        storage_prefix="apiregistration.k8s.io/apiservices",
    )
}
