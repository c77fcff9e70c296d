"""`fairlead dashboard`: prints a link to the dashboard of a cluster that `fairlead up` runs."""

from __future__ import annotations

import msgspec

from fairlead.cli import exit_code
from fairlead.cli.local_cluster import CURRENT_CLUSTER, LocalConnection, request_local_cluster

PATH = "/fairlead/dashboard"


def dashboard(*, connection: LocalConnection = CURRENT_CLUSTER) -> int:
    """Print a new link to the dashboard of a cluster that `fairlead up --dashboard` runs.

    The link works once, in a browser on the machine where the cluster runs. It opens a session that
    lasts until you close the browser or the cluster ends.

    Try:

        xdg-open "$(fairlead dashboard)"
    """
    print(request_local_cluster(connection, PATH, {}, _Link).url)
    return exit_code.SUCCESS


class _Link(msgspec.Struct, frozen=True):
    """The response of the `fairlead up` cluster to a request for a link to its dashboard."""

    url: str
