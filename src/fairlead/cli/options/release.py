"""Options that choose the Kubernetes version to follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import KUBERNETES, named
from fairlead.whatif.configuration.release import ReleaseChoice

BEHAVE_LIKE_HELP: Final = (
    "Kubernetes version that the scheduler, the node controllers and the Priority admission "
    "plugin follow: 1.36 (default), 1.21, 1.19 or 1.16."
)
GATES_HELP: Final = (
    "Feature gates to set, such as GenericWorkload=true,GangScheduling=true (docs/versions.md). "
    "All other gates have the defaults of the version in --behave-like."
)


@Parameter(name="*", group=KUBERNETES)
@dataclass(frozen=True)
class ReleaseOptions:
    """The options --behave-like and --feature-gates; "" means the default."""

    behave_like: Annotated[str, named("VERSION", BEHAVE_LIKE_HELP)] = ""
    feature_gates: Annotated[str, named("GATES", GATES_HELP)] = ""

    @property
    def choice(self) -> ReleaseChoice:
        """The Kubernetes version and the feature gates that the options choose."""
        return ReleaseChoice(self.behave_like, self.feature_gates)


NO_RELEASE: Final = ReleaseOptions()
