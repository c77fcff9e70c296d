"""The strategies of scheduling.k8s.io, and of the Queues and PodGroups of batch schedulers.

upstream: pkg/registry/scheduling/{priorityclass,podgroup,workload}/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.kind import POD_GROUP, PRIORITY_CLASS, WORKLOAD
from fairlead.apiserver.registry.strategy import CUSTOM, ResourceStrategy
from fairlead.apiserver.validation import pod_group
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check, view_check
from fairlead.apiserver.validation.scheduling import (
    BATCH_GROUPS,
    check_pod_group,
    check_priority_class,
    check_priority_class_update,
    check_queue,
)


def _never(_: Json, __: Json) -> bool:
    """Return False: the generation of a PriorityClass stays 1."""
    return False


# The Queues and PodGroups of batch schedulers are custom resources, with rules that their
# definitions cannot express.
BATCH_STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    f"{plural}.{group}": replace(CUSTOM, rules=replace(CUSTOM.rules, new=view_check(check)))
    for group in BATCH_GROUPS
    for plural, check in (("queues", check_queue), ("podgroups", check_pod_group))
}
STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    PRIORITY_CLASS.resource: ResourceStrategy(
        increments_generation=_never,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=view_check(check_priority_class),
            update=check_priority_class_update,
        ),
    ),
    POD_GROUP.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(pod_group.check_pod_group),
            subresources={"status": pod_group.check_pod_group_status},
        ),
        reset_fields={"status": (("metadata",),)},
    ),
    WORKLOAD.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(pod_group.check_workload),
        ),
    ),
    **BATCH_STRATEGIES,
}
