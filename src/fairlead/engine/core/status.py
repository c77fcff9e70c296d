"""Status: the outcome of a plugin call, as a value with reasons.

The codes are upstream's (staging/src/k8s.io/kube-scheduler/framework/interface.go: Code).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Code(StrEnum):
    """The meaning of an outcome for the pod.

    SUCCESS: scheduling continues. ERROR: the plugin or an API call failed; the pod is retried with
    error backoff. UNSCHEDULABLE: the pod does not fit now; removing pods may help.
    UNSCHEDULABLE_AND_UNRESOLVABLE: the pod does not fit, and removing pods cannot help. WAIT: a
    Permit plugin makes the pod wait. SKIP: the plugin does not apply to this pod. PENDING: like
    UNSCHEDULABLE, but the pod waits for something outside the scheduler.
    """

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


REJECTING: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)


class Status(Struct, frozen=True):
    """The outcome of a plugin call: a code, the reasons, and the name of the plugin.

    The runtime sets `plugin`.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        """Whether the plugin rejected the pod. A failure of the plugin is not a rejection."""
        return self.code in REJECTING

    @property
    def message(self) -> str:
        """The reasons as one text, joined with ", " as in upstream."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return this status with the name of its plugin set to `plugin`."""
        return replace(self, plugin=plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return UNSCHEDULABLE with `reasons`: the pod does not fit now; removing pods may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return UNSCHEDULABLE_AND_UNRESOLVABLE with `reasons`: removing pods cannot help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Return ERROR with `reasons`: the plugin or an API call failed."""
    return Status(Code.ERROR, reasons)
