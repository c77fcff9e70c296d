"""Artificial delays of the post-start hooks, which only conformance replays set.

By default, the hooks of a server act immediately. A replay uses the delays of the recorded server,
whose controllers react a few milliseconds after the response to the client.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict


class ReconcileDelay(Struct, frozen=True, kw_only=True):
    """Delays of the post-start hooks in ns, each relative to the previous step.

    A CustomResourceDefinition gets the condition NamesAccepted after `accepted`, and the condition
    Established after `established`. A deleted definition gets the condition Terminating after
    `ending`, and its custom resources are deleted after `ended`. `flow_status` and `service_status`
    delay the statuses of FlowSchemas and APIServices. If a delay is 0, its step is written together
    with the previous step.
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
