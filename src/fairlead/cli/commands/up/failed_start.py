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

NO_CLUSTER: Final = "export KUBECONFIG=/dev/null/fairlead-up-failed"
"""kubectl refuses a KUBECONFIG below /dev/null, and no program can create the file."""


def print_failed_start(arguments: Sequence[str]) -> None:
    """Print a line for `eval` if a failed `fairlead up` has --detach among its `arguments`.

    The line sets KUBECONFIG to the file of the cluster that runs in the background. If there is no
    such cluster, it sets KUBECONFIG to a path that kubectl refuses. The line ends with the command
    `false`, so that `eval` fails. If stdout is a terminal, nothing is printed.
    """
    if not _is_detached(arguments):
        return
    cluster = running_cluster()
    export = NO_CLUSTER if cluster is None else cluster.export
    with suppress(OSError, ValueError):  # stdout was closed by its reader or by `main.run`
        if not sys.stdout.isatty():
            print(f"{export}; false")


def _is_detached(arguments: Sequence[str]) -> bool:
    """Return whether `arguments` set --detach; --detach=false does not set it.

    Other options and their values are not checked. One of them may be the reason why the start
    failed. If the value of --detach cannot be parsed, the result is True.
    """
    try:
        _, bound, *_ = App(default_command=_start).parse_known_args(list(arguments))
    except CycloptsError:
        return True
    return bool(bound.arguments.get("detach"))


def _start(*, detach: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Declare the option `--detach` of `up`, so that it can be parsed."""
