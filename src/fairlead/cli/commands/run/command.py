"""`fairlead run`: schedules a real cluster."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.commands.run.shadow_options import NO_SHADOW, ShadowOptions
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.dashboard import DashboardPort
from fairlead.cli.options.log import NO_DECISION_LOG, DecisionLogOptions
from fairlead.cli.options.parameter import Names, named, repeatable
from fairlead.cli.options.plugin import AllowExtenders, BatchPlugins, Plugins, RunningBatchConfig
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions

CONTROLLERS_HELP: Final = (
    "Controllers to run: scheduler (default), batch, node-lifecycle and taint-eviction; "
    "comma-separated."
)
CONFIG_HELP: Final = (
    "A KubeSchedulerConfiguration; its leaderElection and clientConnection apply too."
)
LISTEN_HELP: Final = (
    "Where to serve /healthz, /readyz and /metrics over HTTPS (default: 127.0.0.1:10259), or "
    "none. Metrics need a token that may get /metrics."
)
DASHBOARD_HELP: Final = (
    "Also serve a dashboard, which changes nothing, for browsers on this machine. A line on "
    "standard error has a link that works once."
)
OTLP_HELP: Final = (
    "Send spans of scheduling cycles and API requests to the OTLP/HTTP collector at URL, such as "
    "http://localhost:4318; needs pip install 'fairlead[otel]'."
)
ELECT_HELP: Final = "Run without a Lease; only for a cluster where no other replica runs."


def run(
    *,
    controllers: Annotated[Names, repeatable("NAME", CONTROLLERS_HELP)] = ("scheduler",),
    config: Annotated[str | None, named("FILE", CONFIG_HELP)] = None,
    connection: ConnectionOptions = NO_CONNECTION,
    plugin: Plugins = (),
    allow_extenders: AllowExtenders = False,
    batch_config: RunningBatchConfig = None,
    batch_plugin: BatchPlugins = (),
    listen: Annotated[str, named("HOST:PORT", LISTEN_HELP)] = "127.0.0.1:10259",
    tls_cert_file: Annotated[
        str, named("FILE", "Certificate to serve with (default: a self-signed one).")
    ] = "",
    tls_private_key_file: Annotated[str, named("FILE", "Key of --tls-cert-file.")] = "",
    dashboard: Annotated[bool, Parameter(help=DASHBOARD_HELP, negative=())] = False,
    dashboard_port: DashboardPort = 0,
    otlp_endpoint: Annotated[str, named("URL", OTLP_HELP)] = "",
    shadow: ShadowOptions = NO_SHADOW,
    no_leader_election: Annotated[bool, Parameter(help=ELECT_HELP, negative=())] = False,
    rbac: Annotated[
        bool,
        Parameter(help="Print the RBAC roles that these controllers need, and exit.", negative=()),
    ] = False,
    no_events: Annotated[bool, Parameter(help="Write no events.", negative=())] = False,
    flags: ControllerOptions = NO_FLAGS,
    release: ReleaseOptions = NO_RELEASE,
    log: DecisionLogOptions = NO_DECISION_LOG,
) -> int:
    """Schedule the pods of a real cluster, until a signal.

    The scheduler takes pods whose schedulerName is that of one of its profiles; without --config
    that is default-scheduler, so kube-scheduler must not run. Replicas elect a leader with the
    Lease of kube-scheduler (kube-system/kube-scheduler) or the one in --config. docs/production.md
    describes how to deploy it, and the permissions it needs.

    With --shadow it writes nothing: it compares what it would have done with what other schedulers
    do, and prints a summary at the end.

    Try:

        fairlead run --context dev --config scheduler.yaml

        fairlead run --in-cluster --controllers scheduler,batch --batch-config fairlead -v 2

        fairlead run --context dev --plugin examples/plugins/node_price.py:NodePrice

        fairlead run --context dev --dashboard

        fairlead run --context prod --shadow --for 1h --decisions decisions.jsonl
    """
    from fairlead.cli.commands.run.run import RunRequest, print_roles, run_controllers

    command = print_roles if rbac else run_controllers
    return command(
        RunRequest(
            controllers=controllers,
            config=config,
            connection=connection,
            plugins=plugin,
            allow_extenders=allow_extenders,
            batch=(batch_config, batch_plugin),
            listen=listen,
            certificate=(tls_cert_file, tls_private_key_file),
            dashboard=(dashboard, dashboard_port),
            otlp_endpoint=otlp_endpoint,
            elects=not no_leader_election,
            writes_events=not no_events,
            flags=flags,
            release=release,
            log=log,
            shadow=shadow,
        )
    )
