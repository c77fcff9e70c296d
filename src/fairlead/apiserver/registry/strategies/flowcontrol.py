"""The strategies of flowcontrol.apiserver.k8s.io.

upstream: pkg/registry/flowcontrol/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.validation.flowcontrol import check_level, check_schema
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.status import check_flow_status


def _strategy(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_comparisons=1,
            new=json_check(check),
            subresources={"status": check_flow_status},
        ),
        reset_fields={"status": (("metadata",),)},
    )


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "flowschemas.flowcontrol.apiserver.k8s.io": _strategy(check_schema),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _strategy(check_level),
}
