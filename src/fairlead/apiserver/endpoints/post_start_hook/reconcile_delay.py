"""Artificial delays of the post-start hooks.

By default, the hooks of a server act immediately. Only conformance replays set delays. A replay
uses the delays of the recorded server, whose controllers reacted a few milliseconds after the
response to the client.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict


class ReconcileDelay(Struct, frozen=True, kw_only=True):
    """Delays of the post-start hooks in ns, each relative to the previous step.

    `accepted` delays the condition NamesAccepted of a new CustomResourceDefinition, and
    `established` delays its condition Established. If `established` is 0, both conditions are
    written together, without a delay. `ending` delays the condition Terminating of a deleted
    definition, and `ended` delays the deletion of its custom resources. If `ended` is 0, the custom
    resources are deleted without a delay. The condition Terminating is then written only if some of
    them remain, for example because of finalizers. `flow_status` and `service_status` delay the
    statuses of FlowSchemas and APIServices.
    """

    accepted: int = 0
    established: int = 0
    ending: int = 0
    ended: int = 0
    flow_status: int = 0
    service_status: int = 0

    def slowed(self, times: int) -> ReconcileDelay:
        """Return the delays multiplied by `times`."""
        return ReconcileDelay(**{name: times * delay for name, delay in asdict(self).items()})


NO_DELAY: Final = ReconcileDelay()
