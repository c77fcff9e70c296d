"""`fairlead dashboard`: prints a link to the dashboard of a cluster that `fairlead up` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from fairlead.cli import exit_code
from fairlead.cli.local_cluster import request_local_cluster
from fairlead.cli.options.parameter import named

PATH = "/fairlead/dashboard"


def dashboard(
    *,
    kubeconfig: Annotated[
        Path | None,
        named("FILE", "The kubeconfig of the cluster (default: the file in KUBECONFIG)."),
    ] = None,
) -> int:
    """Print a new link to the dashboard of a cluster of `fairlead up --dashboard`.

    The link works once, in a browser on the machine where the cluster runs. It opens a session that
    lasts until you close the browser or the cluster ends.

    Try:

        xdg-open "$(fairlead dashboard)"
    """
    print(request_local_cluster(kubeconfig, PATH, {}, _Link).url)
    return exit_code.SUCCESS


class _Link(msgspec.Struct, frozen=True):
    """The response of the `fairlead up` cluster to a request for a link to its dashboard."""

    url: str
