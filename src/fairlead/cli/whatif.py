"""`fairlead whatif`: a snapshot, a change, and what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.batch_options import BatchConfig, BatchPlugins, NewBatchConfig
from fairlead.cli.options import (
    DEFAULT_OUTPUTS,
    Names,
    OutputOptions,
    named,
    repeatable,
    whole_number,
)
from fairlead.cli.outage_options import (
    NO_FAILURES,
    NO_FLAGS,
    ControllerOptions,
    FailureOptions,
)

DEFAULT_REPORT: Final = "fairlead-whatif.html"
FAIL_ON: Final = """\
Exit with 3 if a displaced pod matches: priority>=1000, namespace=store, name=web-*, labels.app=web.
"""


@Parameter(name="*")
@dataclass(frozen=True)
class ChangeOptions:
    """What to change."""

    apply: Annotated[
        Names, repeatable("FILE", "Create the objects of FILE, or merge them into existing ones.")
    ] = ()
    delete: Annotated[
        Names, repeatable("KIND/NAME", "Delete an object: KIND/NAME or KIND/NAMESPACE/NAME.")
    ] = ()
    scale: Annotated[
        Names, repeatable("KIND/NAME=N", "Scale a workload: deploy/web=20, sts/store/db=3.")
    ] = ()
    cordon: Annotated[
        Names, repeatable("NODE", "Put no new pods on a node, or on those that match key=value.")
    ] = ()
    drain: Annotated[
        Names, repeatable("NODE", "Cordon, and evict the pods as their disruption budgets allow.")
    ] = ()
    max_unavailable: Annotated[
        int | None,
        Parameter(
            help="Drain nodes in turn, so many at a time; each comes back when it is empty.",
            metavar="N",
            converter=whole_number,
        ),
    ] = None
    lasts: Annotated[
        str,
        Parameter(
            name="--for",
            help="How long nodes that fail, or are drained in turn and empty, are away "
            "(default: for good; drained ones come back at once).",
            metavar="DURATION",
            show_default=False,
        ),
    ] = ""
    config: Annotated[
        str | None, named("FILE", "A KubeSchedulerConfiguration for the run with the change.")
    ] = None
    plugin: Annotated[
        Names,
        repeatable("MODULE:CLASS", "A scheduler plugin of yours for the run with the change."),
    ] = ()
    new_batch_config: NewBatchConfig = None
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help="Where names without a namespace are looked for and applied.",
            show_default=False,
        ),
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How to run."""

    seed: Annotated[
        int, Parameter(help="Settles what is left to chance.", converter=whole_number)
    ] = 0
    horizon: Annotated[
        str, Parameter(help="The longest virtual time to run if the cluster does not settle.")
    ] = "1h"
    fail_on: Annotated[Names, repeatable("CONDITION", FAIL_ON)] = ()
    batch_config: BatchConfig = None
    batch_plugin: BatchPlugins = ()


def whatif(
    snapshot: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    change: ChangeOptions = ChangeOptions(),
    running: RunOptions = RunOptions(),
    outputs: OutputOptions = DEFAULT_OUTPUTS,
    failures: FailureOptions = NO_FAILURES,
    controllers: ControllerOptions = NO_FLAGS,
) -> int:
    """Run a cluster with and without a change, and print the difference.

    SNAPSHOT is what `kubectl get nodes,pods,... -A -o yaml` (or `-o json`) prints: a file, a
    directory of such files, or `-` for standard input. Options that say what to change may be
    repeated and combined; all of it happens at one instant, in this order: delete, apply, scale,
    cordon, drain, fail. Text output comes with an HTML report, fairlead-whatif.html.

    Try:

        kubectl get nodes,pods -A -o json | fairlead whatif - --drain worker-3

        fairlead whatif dump.yaml --apply new.yaml --scale deploy/store/web=20

        fairlead whatif dump.yaml --cordon pool=old --fail-on 'priority>=1000'

        fairlead whatif dump.yaml --fail-zone eu-1a --for 20m

        fairlead whatif dump.yaml --fail-fraction 60%@eu-1a --node-eviction-rate 0.5

        fairlead whatif dump.yaml --drain pool=old --max-unavailable 1 --for 5m

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.asking import Asked, answer_what_if

    return answer_what_if(snapshot, Asked(change, failures, controllers), running, outputs)
