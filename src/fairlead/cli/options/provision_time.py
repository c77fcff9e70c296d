"""The option --provision-time of commands that simulate node autoscalers."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options.parameter import Names, repeatable

ProvisionTimes = Annotated[
    Names,
    repeatable(
        "[GROUP=]DURATION",
        "With --autoscale: time from the request for a node until it is Ready (default: 90s with "
        "Cluster Autoscaler, 1m with Karpenter). The time varies at random by up to 25% from "
        "node to node. With GROUP=, DURATION applies only to this node group or NodePool.",
    ),
]
