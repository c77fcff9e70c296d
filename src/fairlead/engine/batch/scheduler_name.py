"""The default schedulerNames: a batch scheduler places the pods that have one of these names."""

from __future__ import annotations

from typing import Final

KUBE_BATCH: Final = "kube-batch"
VOLCANO: Final = "volcano"
FAIRLEAD: Final = "fairlead"
SCHEDULER_NAMES: Final = (KUBE_BATCH, VOLCANO, FAIRLEAD)
