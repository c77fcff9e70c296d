"""The options that say how whole jobs are scheduled."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options import Names, named, repeatable

BatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "How whole jobs are scheduled: a file as kube-batch and Volcano read it, or one of "
        "fairlead, kube-batch, kube-batch-upstream, volcano; single-pods for pod by pod (default: "
        "fairlead, if pods name a scheduler of jobs).",
    ),
]
NewBatchConfig = Annotated[
    str | None, named("FILE", "Another --batch-config for the run with the change.")
]
BatchPlugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "A plugin or action of yours for whole jobs, which --batch-config names.",
    ),
]
