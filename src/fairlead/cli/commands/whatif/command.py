"""`fairlead whatif`: simulates a snapshot with and without a change, and prints the difference."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.commands.whatif.options import (
    DEFAULT_RUN,
    NO_CHANGES,
    NO_COMPARISON,
    ChangeOptions,
    ComparisonOptions,
    RunOptions,
)
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.failure import NO_FAILURES, FailureOptions
from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.log import NO_DECISION_LOG, DecisionLogOptions
from fairlead.cli.options.output import DEFAULT_ANSWER_OUTPUTS, AnswerOutputOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def whatif(
    snapshot: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, show_default=False)
    ] = None,
    /,
    *,
    connection: ConnectionOptions = NO_CONNECTION,
    max_input: MaxInput = None,
    change: ChangeOptions = NO_CHANGES,
    comparison: ComparisonOptions = NO_COMPARISON,
    running: RunOptions = DEFAULT_RUN,
    outputs: AnswerOutputOptions = DEFAULT_ANSWER_OUTPUTS,
    failures: FailureOptions = NO_FAILURES,
    controllers: ControllerOptions = NO_FLAGS,
    release: ReleaseOptions = NO_RELEASE,
    log: DecisionLogOptions = NO_DECISION_LOG,
) -> int:
    """Simulate a cluster with and without a change and print the difference.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file (also .gz or .tar), a directory of such files, or `-` for standard
    input. To read a running cluster instead, without changing it, use `--context`, `--kubeconfig`
    or `--in-cluster`.

    Options that describe the change can be combined. The nodes of --add-nodes are added first. When
    these nodes are Ready, all other changes are made at the same simulated time. Their order is:
    delete, apply, set fields, scale, cordon, drain, fail nodes, run the descheduler. Only the
    failure of nodes can be delayed, by --at. With -o text and -o details, the command also writes
    the answer as an HTML report, fairlead-whatif.html.

    Try:

        kubectl get nodes,pods -A -o json | fairlead whatif - --drain worker-3
        fairlead whatif --context prod --drain worker-3
        fairlead whatif dump.yaml --apply new.yaml --scale deploy/store/web=20
        fairlead whatif dump.yaml --add-nodes 10 --like worker-3 --delete node/pool=old
        fairlead whatif dump.yaml --set-resources deploy/store/web=cpu=2,memory=4Gi
        fairlead whatif dump.yaml --cordon pool=old --fail-on 'priority>=1000'
        fairlead whatif dump.yaml --fail-zone eu-1a --for 20m
        fairlead whatif dump.yaml --fail-fraction 60%@eu-1a --node-eviction-rate 0.5
        fairlead whatif dump.yaml --change 'a:--drain n1' --change 'b:--drain n2 --drain n3'
        fairlead whatif dump.yaml --drain pool=old --max-unavailable 1 --for 5m
        fairlead whatif monday.yaml --against-snapshot friday.yaml

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.commands.whatif.run import WhatIfRequest, change_of, run_what_if

    changes = change_of(change, failures)
    request = WhatIfRequest(snapshot, connection, max_input, changes, controllers, release, log)
    return run_what_if(request, running, outputs, comparison)
