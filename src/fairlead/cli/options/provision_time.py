"""The option --provision-time of commands that simulate node autoscalers."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options.parameter import Names, repeatable

ProvisionTimes = Annotated[
    Names,
    repeatable(
        "[GROUP=]DURATION",
        "Time from requesting a node until it is Ready, varied by up to a quarter, for all node "
        "groups and NodePools or for GROUP (default: 90s with Cluster Autoscaler, 1m with "
        "Karpenter).",
    ),
]
