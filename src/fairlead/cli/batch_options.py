"""The options that say how whole jobs are scheduled."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options import named

BatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "How whole jobs are scheduled: a configuration of kube-batch or Volcano, or kube-batch or "
        "fairlead for one of Fairlead's own (default: fairlead, if pods name such a scheduler).",
    ),
]
NewBatchConfig = Annotated[
    str | None, named("FILE", "Another --batch-config for the run with the change.")
]
