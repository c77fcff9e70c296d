"""Options of the commands that plan: fit, consolidate, drain-plan, size and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.parameter import (
    CHANGE,
    IN_SCHEDULER,
    Names,
    integer,
    named,
    number_or_percentage,
    repeatable,
)
from fairlead.cli.options.plugin import AllowExtenders, Plugins, PresentConfig

if TYPE_CHECKING:
    from fairlead.whatif.change.cluster_change import ClusterChange

SnapshotSource = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]
"""The positional SNAPSHOT; None if a connection names a cluster instead."""

_PACE_HELP: Final = (
    "Number of nodes to drain at a time, or a percentage of the nodes to drain, such as 5%. A "
    "percentage is rounded down, but to at least one node. By default, the command simulates "
    "drains of 1, 2, 4, ... nodes at a time, and answers with the fastest safe drain."
)
DrainPace = Annotated[
    int | str | None, Parameter(help=_PACE_HELP, metavar="N", converter=number_or_percentage)
]
"""How many nodes are drained at a time; None tries several numbers."""

AutoscalerRule = Literal["annotations", "local-storage", "unmanaged", "system-pods"]
"""A rule by which autoscalers keep a pod where it is."""

NodeRule = Literal["annotations", "local-storage", "unmanaged", "system-pods", "waiting-gangs"]
"""A rule by which a plan keeps a node."""


@Parameter(name="*")
@dataclass(frozen=True)
class PresentOptions:
    """The options that describe the current scheduler, and a seed for random choices."""

    config: PresentConfig = None
    plugin: Plugins = ()
    max_input: MaxInput = None
    allow_extenders: AllowExtenders = False
    seed: Annotated[
        int,
        Parameter(help="Seed for tie-breaking and other random choices.", converter=integer),
    ] = 0


PRESENT_DEFAULTS: Final = PresentOptions()


@Parameter(name="*", group=CHANGE)
@dataclass(frozen=True)
class PlanChangeOptions:
    """The options for a change of the cluster before a plan, named as in ClusterChange.

    The options have the same meaning as in fairlead whatif. --namespace is not one of them, because
    each command declares this option itself.
    """

    apply: Annotated[
        Names,
        repeatable(
            "FILE",
            "Answer for the cluster after the objects in FILE are created or changed, as kubectl "
            "apply does.",
        ),
    ] = ()
    scale: Annotated[
        Names,
        repeatable(
            "KIND/NAME=N",
            "Answer for the cluster after this workload is scaled: deploy/web=20, sts/store/db=3.",
        ),
    ] = ()

    set: Annotated[
        Names,
        repeatable(
            "KIND/NAME:path=value",
            "Answer for the cluster after this field of an object is set "
            "(pdb/shop/web:spec.minAvailable=1).",
        ),
    ] = ()

    def change(self, namespace: str) -> ClusterChange | None:
        """Return the change; None if no option is given.

        `namespace` is the value of --namespace, or "" if it is not given.
        """
        from fairlead.whatif.change.cluster_change import ClusterChange

        if self == NO_PLAN_CHANGE:
            return None
        return ClusterChange(
            apply=tuple(self.apply),
            scale=tuple(self.scale),
            set=tuple(self.set),
            namespace=namespace,
        )

    def change_in(self, namespace: str) -> ClusterChange | None:
        """Return the change; None if no option is given.

        This method is for commands that use --namespace only for the change. Raises InputError if
        `namespace` is given without a change.
        """
        from fairlead.whatif.input.error import InputError

        change = self.change(namespace)
        if namespace and change is None:
            raise InputError("--namespace", "has no effect without --apply, --scale or --set")
        return change


NO_PLAN_CHANGE: Final = PlanChangeOptions()

ChangeNamespace = Annotated[
    str,
    Parameter(
        name=["--namespace", "-n"],
        help=(
            "Namespace for objects that are given without a namespace. For --scale and --set, the "
            "default is to search all namespaces. For objects without metadata.namespace in the "
            "files of --apply, the default is 'default'."
        ),
        metavar="NAME",
        show_default=False,
        group=CHANGE,
    ),
]
"""The --namespace of a command that needs a namespace only for PlanChangeOptions."""


@Parameter(name="*")
@dataclass(frozen=True)
class RecordedOptions(PresentOptions):
    """The options that describe the scheduler of a recorded history."""

    config: Annotated[
        str | None,
        named(
            "FILE",
            "KubeSchedulerConfiguration of the recorded scheduler: a file, or "
            "configmap/NAMESPACE/NAME for the configuration in a ConfigMap of --snapshot. If FILE "
            "is an export of kube-scheduler-simulator that contains a configuration, this "
            "configuration is the default. For all other files, the default is kube-scheduler's "
            "default configuration.",
        ),
        IN_SCHEDULER,
    ] = None
    # `fairlead replay` never calls extenders, so the option is hidden.
    allow_extenders: Annotated[bool, Parameter(show=False, negative=())] = False


RECORDED_DEFAULTS: Final = RecordedOptions()
