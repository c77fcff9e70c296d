"""`fairlead watch`: answers what-if questions again whenever a cluster changes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.parameter import named

LISTEN_HELP: Final = "Address at which the answers are served (default: 127.0.0.1:8270)."
BEYOND_HELP: Final = (
    "Allow addresses in --listen that other machines can reach. WARNING: the answers and the token "
    "are sent unencrypted."
)


def watch(
    *,
    ask: Annotated[str, named("FILE", "YAML file with the questions, as shown above.")],
    connection: ConnectionOptions = NO_CONNECTION,
    listen: Annotated[str, named("HOST:PORT", LISTEN_HELP)] = "127.0.0.1:8270",
    token_file: Annotated[
        Path | None,
        named(
            "FILE",
            "File with the token that clients must send. By default, the command creates a token "
            "and prints it.",
        ),
    ] = None,
    beyond_loopback: Annotated[bool, Parameter(help=BEYOND_HELP, negative=())] = False,
) -> int:
    """Answer what-if questions again whenever a cluster changes, and serve the answers over HTTP.

    The file of --ask contains the questions. Each question has a name and options of `fairlead
    whatif`. The field 'every' in the file sets the interval at which the command reads the cluster
    (default: 1m). If none of --kubeconfig, --context and --in-cluster is given, the command reads
    the cluster that kubectl would use. If the cluster has changed, the command answers all
    questions again. It serves the answers as a web page (/), as JSON (/answers) and as Prometheus
    metrics (/metrics). Clients must send a token, as a bearer token or as ?token= in the URL.
    Health checks (/healthz) need no token. An example of a file with two questions:

        every: 1m
        questions:
          - name: drain worker-3
            ask: --drain worker-3
          - name: zone a fails
            ask: --fail-zone eu-1a --for 20m

    Try:

        fairlead watch --ask questions.yaml --context prod
    """
    from fairlead.cli.commands.watch.run import watch_cluster

    return watch_cluster(
        ask, connection, listen, token_file=token_file, beyond_loopback=beyond_loopback
    )
