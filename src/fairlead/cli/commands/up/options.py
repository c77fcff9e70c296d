"""UpOptions: the options of `fairlead up` and their validation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.api.pods.run_duration import FOREVER
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.apiserver.endpoints.audit import AuditLevel
from fairlead.apiserver.request import User
from fairlead.cli.commands.up.cluster_name import check_cluster_name
from fairlead.cli.commands.up.user import require_own_contexts, user_of
from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.dashboard import PORT_MAX, check_dashboard_port
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    KARPENTER,
    NO_AUTOSCALING,
    OFF,
    AutoscaleOptions,
)
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.worlds.decision_log import Logging
from fairlead.worlds.local.cluster import PARTS
from fairlead.worlds.local.data_dir import data_files, require_regular_files
from fairlead.worlds.local.kubeconfig import NAME, is_of_a_local_cluster
from fairlead.worlds.local.server.clock_control import SPEED_MAX, SPEED_MIN, SPEED_RANGE

if TYPE_CHECKING:
    from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig

_NODES_DEFAULT: Final = 3
_ZONES_DEFAULT: Final = 1
NODES_MAX: Final = 10_000
NODE_LIFECYCLE: Final = "node-lifecycle"
KUBELET: Final = "kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `fairlead up`."""

    nodes: int | None  # None if the user has not set it; see `node_count`
    zones: int | None  # None if the user has not set it; see `zone_count`
    host: str
    port: int
    data_dir: Path | None
    users: Names  # the values of --user
    audit: Path | None
    kubeconfig: Path | None
    speed: float  # in simulated seconds per real second
    paused: bool
    without: Names
    logging: Logging  # returns a reporter, which logs decisions
    audit_level: AuditLevel = AuditLevel.METADATA
    accept_loss: bool = False
    job_duration: str = "5s"
    command: Names = ()
    client_certificates: bool = False
    controllers: ControllerOptions = NO_FLAGS
    release: Release = CURRENT
    limited: tuple[LimitedResource, ...] = ()  # the limited resources in `limits_file`
    limits_file: str | None = None  # the path of --admission-control-config-file
    stages: tuple[Manifest, ...] = ()  # the KWOK Stages in `stage_files`
    stage_files: Names = ()  # the paths of --kwok-stages
    snapshot: str | None = None
    autoscale: AutoscaleOptions = NO_AUTOSCALING
    dashboard: bool = False
    dashboard_port: int = 0
    instance_types: str | None = None
    provision_time: Names = ()
    name: str = NAME  # the name of the cluster in the kubeconfig
    keep_time: bool = False  # starts the clock at the time of the snapshot or of the stored cluster

    def check(self) -> None:
        """Raise InputError for invalid options, before anything is written or opened."""
        if self.command and self.command[0].startswith("-"):
            # A misspelt option is parsed as the command. To suggest a similar option, main.py looks
            # up the source of this error among the options.
            raise InputError(self.command[0].partition("=")[0], "is not a command")
        if not 0 <= self.node_count <= NODES_MAX:
            raise InputError("--nodes", f"must be from 0 to {NODES_MAX}")
        if not 1 <= self.zone_count <= max(1, self.node_count):
            raise InputError("--zones", "must be from 1 to the number of nodes")
        if not 0 <= self.port <= PORT_MAX:
            raise InputError("--port", f"must be from 0 to {PORT_MAX}")
        if not SPEED_MIN <= self.speed <= SPEED_MAX:
            raise InputError("--speed", SPEED_RANGE)
        check_cluster_name(self.name)
        for name in self.without_components:
            if name not in PARTS:
                problem = f"must be one of {', '.join(PARTS)}"
                raise InputError("--without", problem, object_name=name)
        self._check_controllers()
        self._check_stages()
        self.job_time  # noqa: B018 - raises
        check_dashboard_port(self.dashboard_port, dashboard=self.dashboard)
        self._check_users()
        self._check_autoscaler()
        self._check_files()
        if self.snapshot is not None and (self.nodes, self.zones) != (None, None):
            raise InputError("--snapshot", "names the nodes; leave out --nodes and --zones")

    def _check_files(self) -> None:
        """Raise InputError if an output would overwrite a file that must not be replaced.

        Also raise InputError if a file of --data-dir is not a regular file, or if --accept-loss,
        --keep-time or --audit-level is given without another option that it needs.
        """
        if self.accept_loss and self.data_dir is None:
            raise InputError("--accept-loss", "needs --data-dir")
        if self.keep_time and self.data_dir is None and self.snapshot is None:
            raise InputError("--keep-time", "needs --snapshot or --data-dir")
        if self.audit_level is not AuditLevel.METADATA and self.audit is None:
            raise InputError("--audit-level", "needs --audit")
        if self.data_dir is not None:
            try:
                require_regular_files(self.data_dir)
            except ValueError as cause:
                raise InputError("--data-dir", str(cause)) from None
        if self.kubeconfig is not None:
            _require_replaceable(self.kubeconfig)
        outputs = {"--audit": self.audit, "--kubeconfig": self.kubeconfig}
        files = (
            self.snapshot,
            self.autoscale,
            self.instance_types,
            self.limits_file,
            self.stage_files,
        )
        stored = () if self.data_dir is None else data_files(self.data_dir)
        require_distinct(outputs, *files, stored, in_place=("--audit",))

    def _check_autoscaler(self) -> None:
        """Raise InputError for an option that needs another value of --autoscale."""
        chosen = self.autoscale.autoscale
        if chosen in (OFF, KARPENTER) and self.autoscale.node_groups:
            raise InputError("--node-groups", "needs --autoscale cluster-autoscaler")
        if chosen == OFF and self.instance_types is not None:
            raise InputError("--instance-types", "needs --autoscale karpenter")
        if chosen == OFF and self.provision_time:
            raise InputError("--provision-time", "needs --autoscale")

    def _check_controllers(self) -> None:
        """Raise InputError for a flag of kube-controller-manager that is invalid or unused."""
        if self.controllers.flags and NODE_LIFECYCLE in self.without_components:
            flag = next(iter(self.controllers.flags))
            raise InputError(f"--{flag}", f"has no effect with --without {NODE_LIFECYCLE}")
        self.node_lifecycle  # noqa: B018 - raises

    def _check_stages(self) -> None:
        """Raise InputError for a KWOK Stage that cannot be simulated or has no effect."""
        if self.stage_files and KUBELET in self.without_components:
            raise InputError("--kwok-stages", f"has no effect with --without {KUBELET}")
        if self.stages:
            with_stages(KubeletConfig(), self.stages, seed=0)

    def _check_users(self) -> None:
        """Raise InputError for a user that is invalid, repeated, or named as the administrator."""
        names = [user.name for user in self.further_users]
        for name in names:
            if names.count(name) > 1:
                raise InputError("--user", "is given twice", object_name=name)
        require_own_contexts(self.further_users, self.name)

    @property
    def node_count(self) -> int:
        """The number of nodes with which a new cluster starts."""
        return _NODES_DEFAULT if self.nodes is None else self.nodes

    @property
    def zone_count(self) -> int:
        """The number of zones of the nodes with which a new cluster starts."""
        return _ZONES_DEFAULT if self.zones is None else self.zones

    @property
    def job_time(self) -> DurationNs | None:
        """The time in ns for which Job pods and other finite pods run; None means forever.

        Raises InputError.
        """
        if self.job_duration == FOREVER:
            return None
        try:
            return read_duration(self.job_duration)
        except ValueError as cause:
            raise InputError("--job-duration", f"{cause}, or {FOREVER}") from None

    @property
    def node_lifecycle(self) -> NodeLifecycleConfig | None:
        """The node controllers' configuration; None if no option sets one of their flags.

        Raises InputError.
        """
        if not self.controllers.flags:
            return None
        # Imported only if needed: most clusters have upstream's defaults.
        from fairlead.cli.options.node_lifecycle import node_lifecycle

        return node_lifecycle(self.controllers, release=self.release)

    @property
    def without_components(self) -> Names:
        """The names of the components in --without."""
        return tuple(name.strip() for text in self.without for name in text.split(","))

    @property
    def further_users(self) -> tuple[User, ...]:
        """The users that --user adds. Raises InputError."""
        return tuple(map(user_of, self.users))


def _require_replaceable(path: Path) -> None:
    """Raise InputError for an existing file that `fairlead up` did not write.

    Devices and pipes are accepted, because writing to them replaces nothing.
    """
    if not path.is_file():
        return
    try:
        text = path.read_bytes()
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError("--kubeconfig", problem, object_name=str(path)) from None
    if text.strip() and not is_of_a_local_cluster(text):
        problem = (
            "was not written by fairlead up and would be overwritten; choose another FILE; "
            f"KUBECONFIG={path}:FILE lets kubectl use both"
        )
        raise InputError("--kubeconfig", problem, object_name=str(path))
