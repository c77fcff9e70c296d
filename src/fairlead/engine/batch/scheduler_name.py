"""The scheduler names whose pods a batch scheduler places if its configuration names none."""

from __future__ import annotations

from typing import Final

KUBE_BATCH: Final = "kube-batch"
VOLCANO: Final = "volcano"
FAIRLEAD: Final = "fairlead"
SCHEDULER_NAMES: Final = (KUBE_BATCH, VOLCANO, FAIRLEAD)
