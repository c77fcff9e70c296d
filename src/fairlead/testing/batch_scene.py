"""BatchScene: a small cluster in which sessions of the batch scheduler run.

scene = BatchScene(configuration, make_node("n"), *make_gang("train", 3), plugins=[SmallFirst])
scene.run()                                      # {"default/train-0": "n", ...}
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.objects import ApiObject
from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import read_configuration
from fairlead.engine.batch.plugin_check import extensions_of, refuse_unused
from fairlead.engine.batch.plugin_guard import PluginFailures
from fairlead.engine.batch.run_session import SessionOutcome, run_session
from fairlead.engine.core.command import Bind
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster


class BatchScene:
    """A cluster of `objects` and a batch scheduler.

    `outcome` describes the last session; None before the first session. `failures.messages`
    describes how plugins and actions have failed since the scene was built.
    """

    def __init__(
        self,
        configuration: str,
        *objects: ApiObject,
        plugins: Iterable[type] = (),
        actions: Iterable[Action] = (),
        seed: int = 0,
    ) -> None:
        """Build the cluster from `objects`, and the scheduler from `configuration`, a YAML text.

        `plugins` are classes, and `actions` are instances. `seed` decides between nodes with equal
        scores. Raises ValueError if the configuration, a plugin or an action cannot be used. Also
        raises ValueError for a plugin or action that the configuration does not name.
        """
        own, config = extensions_of(plugins, actions), read_configuration(configuration)
        refuse_unused(config, own, "the configuration")
        self.cluster = Cluster()
        self.outcome: SessionOutcome | None = None
        self.failures = PluginFailures()
        self._composition = compose(config, self.cluster, own, self.failures)
        self._tie_break = TieBreak(seed)
        loaded = ObjectsLoaded(list(objects))
        self.cluster.apply(loaded)
        self._composition.jobs.apply(loaded)

    def run(self, now: Instant = 0) -> dict[str, str]:
        """Run one session of the batch scheduler at `now`; return the node of each pod it binds.

        The keys are `namespace/name` of the pods.
        """
        self.outcome = run_session(self._composition, self.cluster, self._tie_break, now)
        binds = (command for command in self.outcome.commands if isinstance(command, Bind))
        return {bind.pod.key: bind.node for bind in binds}
