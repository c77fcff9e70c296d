"""`fairlead up`: a cluster in this process that kubectl and every client can talk to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options import Names, named, repeatable, whole_number

WITHOUT_HELP = (
    "Leave a part out, so that something else can take its place: kubelet, workloads, volumes, "
    "disruption, node-lifecycle, scheduler or metrics; several with commas."
)
HOST_HELP = (
    "The address to listen at (default: 127.0.0.1, which this machine alone can reach); 0.0.0.0 "
    "lets others ask, who need a token as well."
)
USER_HELP = (
    "Let somebody else in as well, who may do what roles are bound to them: a user of the "
    "kubeconfig, with a context of that name; several times."
)
CERTIFICATES_HELP = (
    "Let the users of the kubeconfig show certificates of the cluster's own authority instead of "
    "tokens."
)


def up(
    *,
    nodes: Annotated[int, Parameter(help="How many simulated nodes.", converter=whole_number)] = 3,
    zones: Annotated[
        int, Parameter(help="In how many zones, in turn.", converter=whole_number)
    ] = 1,
    host: Annotated[str, named("HOST", HOST_HELP)] = "127.0.0.1",
    port: Annotated[
        int, Parameter(help="Where to listen; 0 is any free port.", converter=whole_number)
    ] = 0,
    data_dir: Annotated[
        Path | None,
        named("DIR", "Keep everything there, whatever happens to the process (default: nothing)."),
    ] = None,
    user: Annotated[Names, repeatable("NAME[:GROUP,…]", USER_HELP)] = (),
    audit: Annotated[
        Path | None, named("FILE", "Append a line of JSON about each request to this file.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, named("FILE", "Where to write the kubeconfig (default: a temporary file).")
    ] = None,
    speed: Annotated[float, Parameter(help="Seconds inside per second outside.")] = 1.0,
    paused: Annotated[
        bool,
        Parameter(help="Let time stand still but for `fairlead clock advance`.", negative=()),
    ] = False,
    without: Annotated[Names, repeatable("PART", WITHOUT_HELP)] = (),
    client_certificates: Annotated[bool, Parameter(help=CERTIFICATES_HELP, negative=())] = False,
) -> int:
    """Run a Kubernetes control plane with simulated nodes in this process, until Ctrl-C.

    kubectl, client libraries and operators work against it as against a cluster: it serves the
    Kubernetes API over HTTPS, with Fairlead's scheduler, workload controllers, node lifecycle
    and simulated kubelets behind it. Nothing is run: containers only say that they do.

    Try:

        fairlead up --nodes 20 --zones 3 --kubeconfig cluster.yaml

        fairlead up --paused, and then: fairlead clock advance 5m
    """
    from fairlead.cli.up_wanted import Wanted
    from fairlead.cli.upping import serve

    wanted = Wanted(
        nodes=nodes,
        zones=zones,
        host=host,
        port=port,
        data_dir=data_dir,
        users=user,
        audit=audit,
        kubeconfig=kubeconfig,
        speed=speed,
        paused=paused,
        without=without,
        client_certificates=client_certificates,
    )
    return serve(wanted)
