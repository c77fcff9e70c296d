"""The default names of a batch scheduler. It places pods whose schedulerName is one of them."""

from __future__ import annotations

from typing import Final

KUBE_BATCH: Final = "kube-batch"
VOLCANO: Final = "volcano"
FAIRLEAD: Final = "fairlead"
SCHEDULER_NAMES: Final = (KUBE_BATCH, VOLCANO, FAIRLEAD)
