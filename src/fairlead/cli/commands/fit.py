"""`fairlead fit`: how many more pods of a kind fit, where, and what stops the next one."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import integer, named
from fairlead.cli.options.plan import SnapshotSource
from fairlead.cli.options.present import PRESENT_DEFAULTS, PresentOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def fit(
    snapshot: SnapshotSource = None,
    /,
    *,
    pod: Annotated[
        str | None,
        named("FILE", "A file with a Pod or a workload (YAML or JSON)."),
    ] = None,
    like: Annotated[
        str | None,
        named("KIND/NAME", "Pods like those of a workload: deploy/shop/web, sts/shop/db, pod/a/b."),
    ] = None,
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help="Namespace for names and objects that do not specify one.",
            show_default=False,
        ),
    ] = "",
    preempt: Annotated[
        bool, Parameter(help="Let the new pods evict pods of lower priority.", negative=())
    ] = False,
    max_limit: Annotated[
        int | None,
        Parameter(help="Stop after this many pods.", metavar="N", converter=integer),
    ] = None,
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Count how many more pods fit, where they go, and what stops the next one.

    SNAPSHOT is the output of `kubectl get nodes,pods,... -A -o yaml` (or `-o json`): a file, a
    directory of such files, or `-` for standard input. Instead of it, `--context`, `--kubeconfig`
    or `--in-cluster` reads a running cluster, without changing it. New pods pass admission, count
    against quotas, and are placed by the scheduler with all its plugins. Pods that are pending
    already are placed first.

    Try:

        fairlead fit dump.yaml --like deploy/shop/web

        fairlead fit dump.yaml --pod web.yaml -o json

        fairlead fit --context prod --like deploy/shop/web --preempt

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.planner.fit import PODS_MAX, fit_answer
    from fairlead.whatif.planner.fit import fit as count_fitting
    from fairlead.whatif.planner.new_pod import pod_source

    if max_limit is not None and not 1 <= max_limit <= PODS_MAX:
        raise InputError("--max-limit", f"{max_limit} is not from 1 to {PODS_MAX:,}")
    with ProgressBar() as progress:
        read = read_plan_input(snapshot, connection, present, release, progress, preempts=preempt)
        source = pod_source(pod, like, namespace, read.inventory)
        result = count_fitting(read.model, source, progress, max_limit or PODS_MAX)
    print_tabular(fit_answer(result, source, read.model, read.snapshot.source, read.notes), output)
    return 0
