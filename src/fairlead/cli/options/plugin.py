"""Options that load plugins and configure the batch scheduler."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.parameter import Names, named, repeatable

Plugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Add a scheduler plugin: MODULE:CLASS, FILE.py:CLASS or the name of an installed plugin. "
        "Append =N to set the weight of its scores (default: 1). The plugin's code runs with your "
        "permissions.",
    ),
]
AllowExtenders = Annotated[
    bool,
    Parameter(
        help="Call the extenders of scheduler configurations, and send them pods and nodes. "
        "Without this option, a configuration with extenders is refused.",
        negative=(),
    ),
]
BatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Configuration of the batch scheduler: a kube-batch or Volcano file, or a built-in "
        "configuration: fairlead, kube-batch, kube-batch-upstream or volcano. The value "
        "single-pods means that no batch scheduler runs and every pod is scheduled on its own. By "
        "default, the built-in configuration fairlead is used if pods need a batch scheduler. "
        "Pods with the schedulerName kube-batch or volcano always need one. Pods with the "
        "schedulerName fairlead need a batch scheduler only if any of these pods names a group, or "
        "if a PodGroup or a Queue exists.",
    ),
]
RunningBatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Configuration of the batch scheduler: a kube-batch or Volcano file, or a built-in "
        "configuration: fairlead (default), kube-batch, kube-batch-upstream or volcano. Needs "
        "--controllers scheduler,batch.",
    ),
]
NewBatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Batch scheduler configuration that replaces --batch-config in the simulation with the "
        "change.",
    ),
]
BatchPlugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Load a batch plugin or action that --batch-config refers to. Its code runs with your "
        "permissions.",
    ),
]
