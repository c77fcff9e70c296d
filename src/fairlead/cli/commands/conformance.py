"""`fairlead conformance`: replays decisions recorded from upstream binaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from fairlead.cli.options.parameter import integer

_READ = Parameter(validator=validators.Path(exists=True, dir_okay=False))
_COUNT = Parameter(validator=validators.Number(gte=0), converter=integer)

Recorded = Literal[
    "scheduling",
    "timelines",
    "volumes",
    "nodelifecycle",
    "kubebatch",
    "autoscaler",
    "karpenter",
    "api",
]


def conformance(
    kind: Recorded,
    /,
    *files: Path,
    defects: Literal["upstream", "fixed"] = "upstream",
    only: Annotated[str, Parameter(metavar="PATTERN")] = "*",
    show: Annotated[int, _COUNT] = 20,
    server: Annotated[str, Parameter(metavar="URL", show_default=False)] = "",
    tokens: Annotated[Path | None, _READ] = None,
    ca: Annotated[Path | None, _READ] = None,
) -> int:
    """Compare Fairlead's decisions with decisions recorded from kube-scheduler and other binaries.

    For each file, the command prints in how many cases Fairlead agrees with the recording, and in
    how many it differs. For each case that differs, it prints the first difference: the path of the
    field, the recorded value and Fairlead's value.

    Try:

        fairlead conformance scheduling tests/golden/data/scheduling/*.jsonl.gz
        fairlead conformance api --only 'crud.watch*' tests/golden/data/api/*.jsonl.gz

    Parameters
    ----------
    kind
        What FILES contain: `scheduling` (single decisions of kube-scheduler), `volumes` (single
        decisions of kube-scheduler for pods with volumes), `timelines` (runs of kube-scheduler
        over time), `nodelifecycle` (runs of the node controllers in kube-controller-manager),
        `kubebatch` (scheduling sessions of kube-batch), `autoscaler` (decisions of Cluster
        Autoscaler), `karpenter` (decisions of Karpenter) or `api` (responses of kube-apiserver).
        All FILES must be of the same kind.
    files
        One or more files with recorded cases, as JSON lines, plain or gzipped.
    defects
        With kind `kubebatch` or `nodelifecycle`: whether Fairlead reproduces the known defects of
        the recorded programs. With 'upstream', it reproduces them, so that its decisions equal the
        recorded ones. With 'fixed', it decides without these defects. The command then lists the
        cases that depend on a defect, and counts them as corrected, not as different.
    only
        Replay only the cases whose names match this shell pattern, such as `crud.*`. With kind
        `api`, a pattern without wildcards selects one case; all differences of this case are
        printed, not only the first one.
    show
        Largest number of differences to print for each file.
    server
        With kind `api`: send the requests to the API server at this URL instead of Fairlead's own
        API server.
    tokens
        With `--server`: a file with users and their tokens, in the format of kube-apiserver's
        `--token-auth-file`. By default, the token of each user is the user name followed by
        'token', such as 'alicetoken'.
    ca
        With `--server`: a file with the CA certificate of the server.
    """
    from fairlead.conformance.run import run

    if kind != "api":
        return run(kind, files, defects=defects, only=only, shown=show)
    from fairlead.conformance.api.server_choice import cases

    with cases(server, tokens, ca, only) as judged_by:
        return run(kind, files, defects=defects, only=only, shown=show, judged_by=judged_by)
