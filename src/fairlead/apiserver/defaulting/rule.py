"""The rule of each type, by the type's name: `v1.Container`, `core.v1.Event` where that is two.

upstream: SetDefaults_* in pkg/apis/*/*/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.defaulting.claim import CLAIM_RULES
from fairlead.apiserver.defaulting.constants import CONSTANT_RULES
from fairlead.apiserver.defaulting.fill import Rule
from fairlead.apiserver.defaulting.limits import LIMIT_RULES
from fairlead.apiserver.defaulting.network import NETWORK_RULES
from fairlead.apiserver.defaulting.pod import POD_RULES
from fairlead.apiserver.defaulting.workload import WORKLOAD_RULES

RULES: Final[Mapping[str, Rule]] = {
    **CONSTANT_RULES,
    **POD_RULES,
    **LIMIT_RULES,
    **NETWORK_RULES,
    **WORKLOAD_RULES,
    **CLAIM_RULES,
}
