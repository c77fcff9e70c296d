"""Which nodes do not count when the health of their zone is worked out.

They are marked and tainted like all others.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:
isNodeExcludedFromDisruptionChecks, and legacyIsMasterNode until 1.19
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.objects import Node
from fairlead.engine.nodelifecycle.profile import Profile

EXCLUDE_DISRUPTION: Final = "node.kubernetes.io/exclude-disruption"
# By name, never by label: `master`, or `master-` and three characters, at the end.
_MASTER: Final = re.compile(r".*(master|master-...)", re.DOTALL)


def is_excluded(node: Node, profile: Profile) -> bool:
    """Whether `node` does not count in its zone."""
    if profile.excludes_masters and _MASTER.fullmatch(node.metadata.name):
        return True
    return profile.excludes_labelled and EXCLUDE_DISRUPTION in node.metadata.labels
