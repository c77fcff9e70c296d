"""PLUGINS: the constructor of every batch plugin, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.engine.batch.defect import BatchDefects
from fairlead.engine.batch.plugins.binpack import Binpack
from fairlead.engine.batch.plugins.conformance import Conformance
from fairlead.engine.batch.plugins.drf import Drf
from fairlead.engine.batch.plugins.gang import Gang
from fairlead.engine.batch.plugins.nodeorder import Nodeorder
from fairlead.engine.batch.plugins.overcommit import Overcommit
from fairlead.engine.batch.plugins.predicates import Predicates
from fairlead.engine.batch.plugins.priority import Priority
from fairlead.engine.batch.plugins.proportion import Proportion
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.batch.session.plugin import BatchPlugin


class PluginContext(Struct, frozen=True):
    """The input for building a plugin: its `arguments`, and the rules and defects in force."""

    rules: BatchRules
    defects: BatchDefects
    arguments: Mapping[str, str]


Factory = Callable[[PluginContext], BatchPlugin]

PLUGINS: Final[Mapping[str, Factory]] = {
    "gang": lambda context: Gang(context.defects),
    "priority": lambda context: Priority(context.defects),
    "conformance": lambda _context: Conformance(),
    "drf": lambda _context: Drf(),
    "proportion": lambda context: Proportion(context.defects),
    "predicates": lambda context: Predicates(context.rules, context.arguments),
    "overcommit": lambda context: Overcommit(context.arguments),
    "binpack": lambda context: Binpack(context.rules, context.arguments),
    "nodeorder": lambda context: Nodeorder(context.rules, context.arguments),
}
