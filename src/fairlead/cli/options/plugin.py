"""Options that configure the schedulers and load their plugins."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.parameter import IN_SCHEDULER, SCHEDULER, Names, named, repeatable

PresentConfig = Annotated[
    str | None,
    named(
        "FILE",
        "KubeSchedulerConfiguration that the cluster uses now: a file, or "
        "configmap/NAMESPACE/NAME for the configuration in a ConfigMap of the dump (default: "
        "kube-scheduler's defaults).",
    ),
    IN_SCHEDULER,
]
Plugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Add a scheduler plugin: MODULE:CLASS, FILE.py:CLASS or the name of an installed plugin. "
        "Append =N to set the weight of its scores (default: 1). The plugin's code runs with your "
        "permissions.",
    ),
    IN_SCHEDULER,
]
AllowExtenders = Annotated[
    bool,
    Parameter(
        help="Call the HTTP extenders that the scheduler configuration names, and send pods and "
        "nodes to them. Without this option, a configuration with extenders is refused.",
        negative=(),
        group=SCHEDULER,
    ),
]
BatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Configuration of the batch scheduler, which schedules groups of pods. FILE is a "
        "kube-batch or Volcano configuration file, or a ConfigMap in the input "
        "(configmap/NAMESPACE/NAME). FILE can also be the name of a built-in configuration: "
        "fairlead, kube-batch, kube-batch-upstream or volcano. With 'single-pods', no batch "
        "scheduler runs, and every pod is scheduled on its own. Default: 'fairlead' if there are "
        "pods for a batch scheduler (docs/batch.md), else 'single-pods'.",
    ),
    IN_SCHEDULER,
]
RunningBatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Configuration of the batch scheduler, which schedules groups of pods. FILE is a "
        "kube-batch or Volcano configuration file, or the name of a built-in configuration: "
        "fairlead (default), kube-batch, kube-batch-upstream or volcano. Needs --controllers "
        "scheduler,batch.",
    ),
    IN_SCHEDULER,
]
NewBatchConfig = Annotated[
    str | None,
    named(
        "FILE",
        "Configuration of the batch scheduler in the simulation with the change, given as for "
        "--batch-config. The simulation without the change uses --batch-config.",
    ),
]
BatchPlugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Load your own plugin or action of the batch scheduler, so that --batch-config can name it."
        " The code runs with your permissions.",
    ),
    IN_SCHEDULER,
]
