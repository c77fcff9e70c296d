"""The strategies of rbac.authorization.k8s.io.

upstream: pkg/registry/rbac/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.kind import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from fairlead.apiserver.registry.strategy import ResourceStrategy

_ROLE_STRATEGY: Final = ResourceStrategy(allow_create_on_update=True, null_when_empty=(("rules",),))
_BINDING_STRATEGY: Final = ResourceStrategy(allow_create_on_update=True)

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    CLUSTER_ROLE.resource: _ROLE_STRATEGY,
    CLUSTER_ROLE_BINDING.resource: _BINDING_STRATEGY,
    ROLE.resource: _ROLE_STRATEGY,
    ROLE_BINDING.resource: _BINDING_STRATEGY,
}
