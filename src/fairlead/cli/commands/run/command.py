"""`fairlead run`: schedules a real cluster."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.commands.run.shadow_options import NO_SHADOW, ShadowOptions
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.controller import NO_NODE_FLAGS, NodeFlags
from fairlead.cli.options.dashboard import DashboardPort
from fairlead.cli.options.log import NO_DECISION_LOG, DecisionLogOptions
from fairlead.cli.options.parameter import IN_SCHEDULER, Names, named, repeatable
from fairlead.cli.options.plugin import AllowExtenders, BatchPlugins, Plugins, RunningBatchConfig
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions

CONTROLLERS_HELP: Final = (
    "Controllers to run, separated by commas: scheduler (default), batch, node-lifecycle, "
    "taint-eviction."
)
CONFIG_HELP: Final = (
    "File with a KubeSchedulerConfiguration (default: kube-scheduler's defaults). The fields "
    "leaderElection and clientConnection also apply."
)
LISTEN_HELP: Final = (
    "Address at which /healthz, /livez, /readyz, /metrics and /fairlead/explain are served over "
    "HTTPS (default: 127.0.0.1:10259). With 'none', nothing is served. Clients of /metrics and "
    "/fairlead/explain must send a bearer token. The token's user needs the RBAC permission to "
    "GET the path."
)
DASHBOARD_HELP: Final = (
    "Also serve a read-only dashboard to browsers on this machine. The command prints a link to "
    "the dashboard on standard error. The link works only once."
)
OTLP_HELP: Final = (
    "Send trace spans of scheduling cycles and API requests to the OTLP/HTTP collector at URL, "
    "such as http://localhost:4318. Needs the packages opentelemetry-sdk and "
    "opentelemetry-exporter-otlp-proto-http."
)
LOG_FORMAT_HELP: Final = (
    "Format of the lines on standard error: text (klog's format) or json (an object per line)."
)
ELECT_HELP: Final = (
    "Run without leader election. Use this option only if no other replica of this command and no "
    "other scheduler of the same pods, such as kube-scheduler, runs in the cluster."
)


def run(
    *,
    controllers: Annotated[Names, repeatable("NAME", CONTROLLERS_HELP)] = ("scheduler",),
    config: Annotated[str | None, named("FILE", CONFIG_HELP), IN_SCHEDULER] = None,
    connection: ConnectionOptions = NO_CONNECTION,
    plugin: Plugins = (),
    allow_extenders: AllowExtenders = False,
    batch_config: RunningBatchConfig = None,
    batch_plugin: BatchPlugins = (),
    listen: Annotated[str, named("HOST:PORT", LISTEN_HELP)] = "127.0.0.1:10259",
    tls_cert_file: Annotated[
        str,
        named(
            "FILE",
            "Certificate of the HTTPS server at --listen (default: a self-signed certificate).",
        ),
    ] = "",
    tls_private_key_file: Annotated[str, named("FILE", "Private key of --tls-cert-file.")] = "",
    dashboard: Annotated[bool, Parameter(help=DASHBOARD_HELP, negative=())] = False,
    dashboard_port: DashboardPort = 0,
    otlp_endpoint: Annotated[str, named("URL", OTLP_HELP)] = "",
    shadow: ShadowOptions = NO_SHADOW,
    no_leader_election: Annotated[bool, Parameter(help=ELECT_HELP, negative=())] = False,
    rbac: Annotated[
        bool,
        Parameter(
            help="Print the RBAC roles that the controllers in --controllers need, and exit.",
            negative=(),
        ),
    ] = False,
    no_events: Annotated[
        bool, Parameter(help="Do not create Events in the cluster.", negative=())
    ] = False,
    flags: NodeFlags = NO_NODE_FLAGS,
    release: ReleaseOptions = NO_RELEASE,
    log: DecisionLogOptions = NO_DECISION_LOG,
    log_format: Annotated[
        Literal["text", "json"], Parameter(help=LOG_FORMAT_HELP, show_choices=False)
    ] = "text",
) -> int:
    """Schedule the pods of a real cluster, until SIGINT or SIGTERM.

    The scheduler handles all pods whose schedulerName is the name of one of its profiles. Without
    --config, the only profile is default-scheduler. The replicas of this command elect a leader,
    and only the leader schedules. Without --config, the election uses the Lease of kube-scheduler
    (kube-system/kube-scheduler), so Fairlead waits while kube-scheduler holds this Lease. To run
    both schedulers at the same time, give Fairlead other profiles and another Lease in --config.
    docs/production.md describes the deployment and the permissions.

    Without --kubeconfig, --context and --in-cluster, the command uses the cluster of
    clientConnection.kubeconfig in --config, or else the cluster that kubectl would use.

    With --shadow, the command writes nothing to the cluster. For each pod, the command compares
    the node that Fairlead would choose with the node that the cluster's own scheduler chooses. At
    the end, the command prints a summary.

    Try:

        fairlead run --context dev --config scheduler.yaml
        fairlead run --in-cluster --controllers scheduler,batch --batch-config fairlead
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
            log_format=log_format,
            shadow=shadow,
        )
    )
