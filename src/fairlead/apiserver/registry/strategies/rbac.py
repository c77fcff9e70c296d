"""The strategies of rbac.authorization.k8s.io.

upstream: pkg/registry/rbac/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation import rbac
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check


def _role(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(
        allow_create_on_update=True,
        rules=KindRules(new=json_check(check)),
        null_when_empty=(("rules",),),
    )


def _binding(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(allow_create_on_update=True, rules=KindRules(new=json_check(check)))


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    CLUSTER_ROLE.resource: _role(rbac.check_cluster_role),
    CLUSTER_ROLE_BINDING.resource: _binding(rbac.check_cluster_role_binding),
    ROLE.resource: _role(rbac.check_role),
    ROLE_BINDING.resource: _binding(rbac.check_role_binding),
}
