"""The scheduler names of the pods that a batch scheduler places by default."""

from __future__ import annotations

from typing import Final

KUBE_BATCH: Final = "kube-batch"
VOLCANO: Final = "volcano"
FAIRLEAD: Final = "fairlead"
SCHEDULER_NAMES: Final = (KUBE_BATCH, VOLCANO, FAIRLEAD)
