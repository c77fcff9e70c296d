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
    only: str = "*",
    show: Annotated[int, _COUNT] = 20,
    server: str = "",
    tokens: Annotated[Path | None, _READ] = None,
    ca: Annotated[Path | None, _READ] = None,
) -> int:
    """Replay decisions recorded from upstream binaries and compare every one.

    For each file, the command prints how many cases agree with the recording and how many differ.
    For each difference, it prints the path of the field, the recorded value and Fairlead's value.

    Try:

        fairlead conformance scheduling tests/golden/data/scheduling/*.jsonl.gz

        fairlead conformance api --only 'crud.watch*' tests/golden/data/api/*.jsonl.gz

    Parameters
    ----------
    kind
        What kind of decisions the files contain.
    files
        Golden case files, plain or gzipped JSON lines.
    defects
        With `upstream`, reproduce the known defects of upstream as recorded. With `fixed`, use
        Fairlead's defaults and list the cases that depend on a corrected defect (kinds `kubebatch`
        and `nodelifecycle`).
    only
        Replay only cases whose names match this pattern. For a name without wildcards, print all
        differences of the case instead of only the first (kind `api`).
    show
        How many differences to show per file.
    server
        Send requests to the API server at this URL instead of Fairlead's own (kind `api`).
    tokens
        File with the users of `--server` and their tokens, in the format of kube-apiserver's
        `--token-auth-file`.
    ca
        The CA certificate that `--server` is verified with.
    """
    from fairlead.conformance.run import run

    if kind != "api":
        return run(kind, files, defects=defects, only=only, shown=show)
    from fairlead.conformance.api.server_choice import cases

    with cases(server, tokens, ca, only) as judged_by:
        return run(kind, files, defects=defects, only=only, shown=show, judged_by=judged_by)
