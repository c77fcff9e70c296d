"""`fairlead up`: runs a cluster in this process, for kubectl and other clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.dashboard import DashboardPort
from fairlead.cli.options.log import NO_DECISION_LOG, DecisionLogOptions
from fairlead.cli.options.parameter import IN_AUTOSCALING, Names, integer, named, repeatable
from fairlead.cli.options.pod_time import StageFiles
from fairlead.cli.options.provision_time import ProvisionTimes
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions

WITHOUT_HELP: Final = (
    "Components to leave out, separated by commas, so that you can run your own components "
    "instead: kubelet, workloads, volumes, provisioner, disruption, node-lifecycle, scheduler, "
    "metrics, storage-class (the default StorageClass). If you leave out 'kubelet', another "
    "program must renew the nodes' Leases and post the nodes' status. Without such a program, the "
    "nodes are NotReady."
)
HOST_HELP: Final = (
    "Address to listen on (default: 127.0.0.1, which only this machine can reach). With 0.0.0.0, "
    "other machines can connect too. Every request needs a token or a client certificate, except "
    "health checks and /version."
)
USER_HELP: Final = (
    "Add a user who is a member of these groups. RBAC decides what the user may do. The kubeconfig "
    "gets a user and a context of the same name."
)
NAME_HELP: Final = (
    "Name of the cluster, its administrator and its context in the kubeconfig (default: fairlead). "
    "If NAME is not fairlead, the users of --user and their contexts are named USER@NAME in the "
    "kubeconfig. If clusters have different names, kubectl can use their kubeconfigs together, and "
    "the clusters can run in the background at the same time (--detach)."
)
CERTIFICATES_HELP: Final = (
    "Write client certificates into the kubeconfig, instead of tokens. The cluster's own CA signs "
    "them."
)
AUDIT_LEVEL_HELP: Final = (
    "With --audit: which bodies the audit log contains. Metadata: none. Request: the bodies of "
    "write requests. RequestResponse: the bodies of write requests and of the responses to them. "
    "With Request and RequestResponse, the log also contains the writes of the cluster's own "
    "controllers, and `fairlead replay` can read the log."
)
COMMAND_HELP: Final = (
    "After `--`: a command to run with KUBECONFIG set. When the command exits, the cluster ends, "
    "and fairlead exits with the command's status."
)
KEEP_TIME_HELP: Final = (
    "Start the clock at the time of --snapshot, or at the time at which the cluster in --data-dir "
    "last changed. By default, the clock starts at the latest of these times: this machine's time, "
    "the time of the dump, and the time of the last change."
)
SNAPSHOT_HELP: Final = (
    "Start with the objects of another cluster: a file, a directory, or - for standard input, as "
    "for fairlead whatif. The nodes of the other cluster become the simulated nodes, and the pods "
    "of the other cluster keep running on these nodes. Cannot be combined with --nodes or --zones."
)
DASHBOARD_HELP: Final = (
    "Also serve a dashboard to browsers on this machine. The second line of output ends with a"
    " link that works once; with a COMMAND, the link is printed on standard error. Run "
    "`fairlead dashboard` to get a new link."
)
JOB_HELP: Final = (
    "Run time of pods with restartPolicy Never or OnFailure, such as pods of Jobs: a duration "
    "(10m) or 'forever' (default: 5s). A pod's annotation fairlead.dev/run-duration takes "
    "precedence."
)

AUTOSCALE_HELP: Final = (
    "Node autoscaler that adds and removes simulated nodes; 'auto' means the autoscaler that runs "
    "in the cluster of --snapshot. With 'karpenter', the API server also serves NodePools, "
    "NodeClaims and NodeOverlays."
)
TYPES_HELP: Final = (
    "With --autoscale karpenter: file with instance types, in the formats of fairlead whatif "
    "--instance-types. By default, the types are those of the nodes in --snapshot. Without "
    "--snapshot, or if no node has an instance type, they are Fairlead's own types with 2 to 32 "
    "cores."
)
GROUPS_HELP: Final = (
    "With --autoscale cluster-autoscaler: file with the node groups, described in "
    "docs/cluster-autoscaler.md. By default, the groups are derived from the labels of the nodes "
    "in --snapshot. Without --snapshot, each zone gets one group of 1 to 100 nodes."
)


def up(
    *command: Annotated[
        str, Parameter(help=COMMAND_HELP, allow_leading_hyphen=True, show_default=False)
    ],
    nodes: Annotated[
        int | None,
        Parameter(help="Number of simulated nodes (default: 3).", converter=integer),
    ] = None,
    zones: Annotated[
        int | None,
        Parameter(
            help="Number of zones (default: 1). Nodes are assigned to zones round-robin.",
            converter=integer,
        ),
    ] = None,
    host: Annotated[str, named("HOST", HOST_HELP)] = "127.0.0.1",
    port: Annotated[
        int,
        Parameter(
            help="Port to listen on. 0 means the port that the cluster in --data-dir had before, "
            "or else any free port.",
            converter=integer,
        ),
    ] = 0,
    snapshot: Annotated[str | None, named("SNAPSHOT", SNAPSHOT_HELP)] = None,
    data_dir: Annotated[
        Path | None,
        named(
            "DIR",
            "Directory to store all API objects in. The next `fairlead up` with this directory "
            "continues with them (default: objects are kept only in memory).",
        ),
    ] = None,
    accept_loss: Annotated[
        bool,
        Parameter(
            help="With --data-dir: start even if data is missing from the directory, such as the "
            "last changes before a crash.",
            negative=(),
        ),
    ] = False,
    user: Annotated[Names, repeatable("NAME[:GROUP,…]", USER_HELP)] = (),
    audit: Annotated[
        Path | None,
        named(
            "FILE",
            "Append one JSON line to FILE for each API request, as in kube-apiserver's audit log.",
        ),
    ] = None,
    audit_level: Annotated[
        Literal["Metadata", "Request", "RequestResponse"], Parameter(help=AUDIT_LEVEL_HELP)
    ] = "Metadata",
    name: Annotated[str, named("NAME", NAME_HELP)] = "fairlead",
    kubeconfig: Annotated[
        Path | None, named("FILE", "Where to write the kubeconfig (default: a temporary file).")
    ] = None,
    speed: Annotated[float, Parameter(help="Simulated seconds per real second.")] = 1.0,
    paused: Annotated[
        bool,
        Parameter(
            help="Start with a stopped clock. `fairlead clock advance` moves it forward, and "
            "`fairlead clock resume` starts it.",
            negative=(),
        ),
    ] = False,
    keep_time: Annotated[bool, Parameter(help=KEEP_TIME_HELP, negative=())] = False,
    job_duration: Annotated[str, named("DURATION", JOB_HELP)] = "5s",
    kwok_stages: StageFiles = (),
    autoscale: Annotated[
        Literal["off", "auto", "cluster-autoscaler", "karpenter"],
        Parameter(help=AUTOSCALE_HELP),
        IN_AUTOSCALING,
    ] = "off",
    node_groups: Annotated[str, named("FILE", GROUPS_HELP), IN_AUTOSCALING] = "",
    dashboard: Annotated[bool, Parameter(help=DASHBOARD_HELP, negative=())] = False,
    dashboard_port: DashboardPort = 0,
    instance_types: Annotated[str | None, named("FILE", TYPES_HELP), IN_AUTOSCALING] = None,
    provision_time: Annotated[ProvisionTimes, IN_AUTOSCALING] = (),
    detach: Annotated[
        bool,
        Parameter(
            help="Run in the background, and return when the cluster is ready. The command prints "
            "a shell command that sets KUBECONFIG. `fairlead down` ends the cluster; if the "
            "cluster has a --name, `fairlead down --name NAME` ends it.",
            negative=(),
        ),
    ] = False,
    without: Annotated[Names, repeatable("PART", WITHOUT_HELP)] = (),
    client_certificates: Annotated[bool, Parameter(help=CERTIFICATES_HELP, negative=())] = False,
    admission_control_config_file: Annotated[
        str | None,
        named(
            "FILE",
            "File with an AdmissionConfiguration, as for kube-apiserver. It can configure only the "
            "plugin ResourceQuota.",
        ),
    ] = None,
    controllers: ControllerOptions = NO_FLAGS,
    release: ReleaseOptions = NO_RELEASE,
    log: DecisionLogOptions = NO_DECISION_LOG,
) -> int:
    """Run a Kubernetes control plane with simulated nodes in one process, until Ctrl-C.

    The command serves the Kubernetes API over HTTPS to kubectl, client libraries and operators. It
    also runs Fairlead's scheduler, workload controllers, node lifecycle controller and simulated
    kubelets. The simulated kubelets run no containers; they only report pod status.

    Try:

        fairlead up --nodes 20 --zones 3 --kubeconfig cluster.yaml
        fairlead up --paused, and then: fairlead clock advance 5m
        fairlead up --snapshot cluster.json
        fairlead up --nodes 12 --zones 3 --dashboard
        fairlead up --nodes 5 -- kubectl get nodes
        eval "$(fairlead up --detach)", and later: fairlead down
    """
    from fairlead.apiserver.endpoints.audit import AuditLevel
    from fairlead.cli.commands.up.detached import start_detached
    from fairlead.cli.commands.up.options import UpOptions
    from fairlead.cli.commands.up.run import serve
    from fairlead.whatif.configuration.admission import read_limited_resources
    from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
    from fairlead.whatif.configuration.kwok_stage import read_stages
    from fairlead.whatif.configuration.release import read_release

    file = admission_control_config_file
    options = UpOptions(
        nodes=nodes,
        zones=zones,
        snapshot=snapshot,
        host=host,
        port=port,
        data_dir=data_dir,
        accept_loss=accept_loss,
        users=user,
        audit=audit,
        audit_level=AuditLevel(audit_level),
        kubeconfig=kubeconfig,
        name=name,
        speed=speed,
        paused=paused,
        keep_time=keep_time,
        without=without,
        job_duration=job_duration,
        stages=() if detach else tuple(read_stages(kwok_stages)),
        stage_files=kwok_stages,
        autoscale=AutoscaleOptions(autoscale, node_groups),
        instance_types=instance_types,
        provision_time=provision_time,
        command=command,
        dashboard=dashboard,
        dashboard_port=dashboard_port,
        client_certificates=client_certificates,
        controllers=controllers,
        release=read_release(release.choice),
        logging=log.logging_with_warnings(),
        # With --detach, the new process reads the file, which can be standard input.
        limited=() if file is None or detach else read_limited_resources(file),
        limits_file=file,
    )
    if detach:
        return start_detached(options)
    return serve(options)
