"""Options that load plugins and configure the batch scheduler."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.parameter import Names, named, repeatable

Plugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Add a scheduler plugin, whose code runs with your rights: MODULE:CLASS, FILE.py:CLASS or "
        "the name of an installed one; append =N to set the weight of its scores.",
    ),
]
AllowExtenders = Annotated[
    bool,
    Parameter(
        help="Call the extenders of scheduler configurations, which sends them pods and nodes; "
        "without this option such a configuration is refused.",
        negative=(),
    ),
]
BatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Batch scheduler: a kube-batch or Volcano configuration file, or one of fairlead, "
        "kube-batch, kube-batch-upstream, volcano; single-pods schedules every pod on its own "
        "(default: fairlead, if a pod's schedulerName is a batch scheduler).",
    ),
]
RunningBatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Batch scheduler: a kube-batch or Volcano configuration file, or one of fairlead, "
        "kube-batch, kube-batch-upstream, volcano (default: fairlead); needs --controllers "
        "scheduler,batch.",
    ),
]
NewBatchConfig = Annotated[
    str | None, named("FILE", "Replaces --batch-config in the simulation with the change.")
]
BatchPlugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Load a batch plugin or action that --batch-config refers to; its code runs with your "
        "rights.",
    ),
]
