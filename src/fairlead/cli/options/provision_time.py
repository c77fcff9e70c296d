"""The option --provision-time of commands that simulate node autoscalers."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options.parameter import Names, repeatable

ProvisionTimes = Annotated[
    Names,
    repeatable(
        "[GROUP=]DURATION",
        "With --autoscale: time from the autoscaler's request for a node until the node is Ready "
        "(default: 90s with Cluster Autoscaler, 1m with Karpenter). Each node takes DURATION plus "
        "or minus up to 25%, at random. With GROUP=, DURATION applies only to this node "
        "group or NodePool.",
    ),
]
