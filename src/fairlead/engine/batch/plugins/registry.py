"""PLUGINS: the constructor of every batch plugin, by name, and the readers of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.engine.batch.defect import BatchDefects
from fairlead.engine.batch.plugins.argument import BOOLEAN, INTEGER, ArgumentReader
from fairlead.engine.batch.plugins.binpack import Binpack, binpack_readers
from fairlead.engine.batch.plugins.conformance import Conformance
from fairlead.engine.batch.plugins.drf import Drf
from fairlead.engine.batch.plugins.gang import Gang
from fairlead.engine.batch.plugins.nodeorder import Nodeorder
from fairlead.engine.batch.plugins.overcommit import Overcommit, overcommit_readers
from fairlead.engine.batch.plugins.predicates import Predicates
from fairlead.engine.batch.plugins.priority import Priority
from fairlead.engine.batch.plugins.proportion import Proportion
from fairlead.engine.batch.rules import PRESSURE_CHECKS, BatchRules
from fairlead.engine.batch.session.plugin import BatchPlugin


class PluginContext(Struct, frozen=True):
    """The input for building a plugin: its `arguments`, and the rules and defects in force."""

    rules: BatchRules
    defects: BatchDefects
    arguments: Mapping[str, str]


Factory = Callable[[PluginContext], BatchPlugin]
Readers = Mapping[str, ArgumentReader[Any]]

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

# The readers of a plugin's arguments, by key. The other plugins have no arguments.
ARGUMENT_READERS: Final[Mapping[str, Callable[[PluginContext], Readers]]] = {
    "predicates": lambda _context: dict.fromkeys(PRESSURE_CHECKS, BOOLEAN),
    "overcommit": lambda context: overcommit_readers(context.arguments),
    "binpack": lambda context: binpack_readers(context.arguments),
    "nodeorder": lambda context: {key: INTEGER for _, key, _ in context.rules.scorers},
}
