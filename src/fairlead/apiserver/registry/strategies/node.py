"""The strategy of RuntimeClasses.

upstream: pkg/registry/node/runtimeclass/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import RUNTIME_CLASS
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.registry.warning.pod import OLD_LABELS
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.node import check_runtime_class


def _runtime_class_warnings(_: Json | None, found: Json) -> Iterator[str]:
    # upstream: pkg/api/node/util.go:GetWarningsForRuntimeClass
    for key in (found.get("scheduling") or {}).get("nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"scheduling.nodeSelector: {key} is {OLD_LABELS[key]}"


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    RUNTIME_CLASS.resource: ResourceStrategy(
        allow_create_on_update=True,
        allow_unconditional_update=False,
        rules=KindRules(name=dns_subdomain_problems, new=json_check(check_runtime_class)),
        warnings=_runtime_class_warnings,
    )
}
