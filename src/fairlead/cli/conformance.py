"""`fairlead conformance`: replay recorded decisions of the real binaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

_READ = Parameter(validator=validators.Path(exists=True, dir_okay=False))
_COUNT = Parameter(validator=validators.Number(gte=0))

Recorded = Literal["scheduling", "timelines", "volumes", "nodelifecycle", "kubebatch", "api"]


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
    """Replay golden case files and compare every decision with the recorded one.

    Prints per file how many cases agree and differ, and the first differing path with both
    values. Exit code 1 on any difference, 2 for a file that is not there or of another kind.

    Try:

        fairlead conformance scheduling tests/golden/data/scheduling/*.jsonl.gz

        fairlead conformance api --only 'crud.watch*' tests/golden/data/api/*.jsonl.gz

    Parameters
    ----------
    kind
        What the files record.
    files
        Golden case files, plain or gzipped JSON lines.
    defects
        Whether upstream's known defects are kept, as recorded, or fixed, as they are elsewhere;
        then cases that depend on one are listed (kinds `kubebatch` and `nodelifecycle`).
    only
        Replay cases whose names match this pattern.
    show
        How many differences of each file to show; with one case, all of its steps that differ.
    server
        Ask the API server at this URL instead of one of our own (kind `api`).
    tokens
        The users of `--server`: lines `token,user,…`, as kube-apiserver's `--token-auth-file`.
    ca
        The certificate authority of `--server`.
    """
    from fairlead.conformance.cli import run

    if kind != "api":
        return run(kind, files, defects=defects, only=only, shown=show)
    from fairlead.conformance.api.serving import cases

    with cases(server, tokens, ca, only) as judged_by:
        return run(kind, files, defects=defects, only=only, shown=show, judged_by=judged_by)
