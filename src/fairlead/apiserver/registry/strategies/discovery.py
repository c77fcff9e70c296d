"""The strategy of EndpointSlices.

upstream: pkg/registry/discovery/endpointslice/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import ENDPOINT_SLICE
from fairlead.apiserver.registry.strategy import ResourceStrategy, is_respecified
from fairlead.apiserver.registry.warning.network import slice_warnings
from fairlead.apiserver.validation.core.endpoints import check_endpoint_slice
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check


def is_slice_respecified(old: Json, new: Json) -> bool:
    """Return whether an update changes an EndpointSlice's labels, or a field outside metadata.

    Such an update increments the EndpointSlice's generation.
    """
    before, after = (obj["metadata"].get("labels") for obj in (old, new))
    return before != after or is_respecified(old, new)


def _warnings(_: Json | None, found: Json) -> Iterator[str]:
    return slice_warnings(found)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    ENDPOINT_SLICE.resource: ResourceStrategy(
        increments_generation=is_slice_respecified,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_comparisons=1,
            new=json_check(check_endpoint_slice),
            # upstream: pkg/apis/discovery/validation/validation.go: ValidateEndpointSlice
            ratcheted="endpoints",
        ),
        null_when_empty=(("endpoints",), ("ports",)),
        warnings=_warnings,
    )
}
