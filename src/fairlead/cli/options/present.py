"""Options that say which scheduler runs in the cluster today, for commands that plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import integer, named
from fairlead.cli.options.plugin import AllowExtenders, Plugins
from fairlead.cli.options.release import ReleaseOptions

if TYPE_CHECKING:
    from fairlead.engine.configuration.release import Release
    from fairlead.engine.scheduling.config import SchedulerConfig


@Parameter(name="*")
@dataclass(frozen=True)
class PresentOptions(ReleaseOptions):
    """The scheduler's configuration and version, and a seed for its choices."""

    config: Annotated[
        str | None,
        named("FILE", "Current KubeSchedulerConfiguration (default: kube-scheduler's defaults)."),
    ] = None
    plugin: Plugins = ()
    allow_extenders: AllowExtenders = False
    seed: Annotated[
        int,
        Parameter(help="Seed for tie-breaking and other random choices.", converter=integer),
    ] = 0

    @property
    def release(self) -> Release:
        """The version to follow. Raises InputError."""
        from fairlead.whatif.configuration.release import read_release

        return read_release(self.choice)

    @property
    def scheduler(self) -> SchedulerConfig:
        """The scheduler's configuration. Raises InputError."""
        from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
        from fairlead.whatif.configuration.user_plugin import UserPlugins

        return read_scheduler_config(
            self.config,
            UserPlugins(self.plugin),
            self.release,
            allow_extenders=self.allow_extenders,
        )


PRESENT_DEFAULTS: Final = PresentOptions()
