"""The line that a failed `fairlead up --detach` prints, for `eval "$(fairlead up --detach)"`.

Without this line, `eval` would succeed, and the next kubectl command would change the cluster of
the user's own kubeconfig.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Parameter

from fairlead.cli.commands.up.detached import running_cluster
from fairlead.worlds.local.kubeconfig import NAME

NO_CLUSTER: Final = "export KUBECONFIG=/dev/null/fairlead-up-failed"
"""kubectl refuses a KUBECONFIG below /dev/null, and no program can create the file."""


def print_failed_start(arguments: Sequence[str]) -> None:
    """Print a line for `eval` if a failed `fairlead up` has --detach among its `arguments`.

    The line sets KUBECONFIG to the file of the cluster of this name that runs in the background. If
    there is no such cluster, the line sets KUBECONFIG to a path that kubectl refuses. The line ends
    with the command `false`, so that `eval` fails. If stdout is a terminal, nothing is printed.
    """
    name = _detached_name(arguments)
    if name is None:
        return
    cluster = running_cluster(name)
    export = NO_CLUSTER if cluster is None else cluster.export
    with suppress(OSError, ValueError):  # stdout was closed by its reader or by `main.run`
        if not sys.stdout.isatty():
            print(f"{export}; false")


def _detached_name(arguments: Sequence[str]) -> str | None:
    """Return the name of the cluster if `arguments` set --detach, and otherwise None.

    --detach=false does not set --detach. Other options and their values are not checked. One of
    them may be the reason why the start failed. If the value of --detach or --name cannot be
    parsed, the result is an empty string, which is the name of no cluster.
    """
    try:
        _, bound, *_ = App(default_command=_start).parse_known_args(list(arguments))
    except CycloptsError:
        return ""
    return bound.arguments.get("name", NAME) if bound.arguments.get("detach") else None


def _start(*, detach: Annotated[bool, Parameter(negative=())] = False, name: str = NAME) -> None:
    """Declare the options `--detach` and `--name` of `up`, so that they can be parsed."""
