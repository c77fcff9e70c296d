"""The strategy of PriorityClasses.

upstream: pkg/registry/scheduling/priorityclass/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import PRIORITY_CLASS
from fairlead.apiserver.registry.strategy import ResourceStrategy


def _never(_: Json, __: Json) -> bool:
    """False: the generation of a PriorityClass stays 1."""
    return False


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    PRIORITY_CLASS.resource: ResourceStrategy(increments_generation=_never)
}
