"""METHODS: all methods that a plugin can have, in the order in which the framework calls them.

If upstream's metrics have a name for an extension point, `Method.point` is that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from fairlead.engine.framework import cluster_event, interface, points
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.preemption import policy

BoundMethod = Callable[..., Any]
Kind = TypeVar("Kind", bound=Plugin)


class Method(Struct, frozen=True):
    """A method that a plugin can have; the framework calls it at the extension point `point`.

    `name` is the name of the method, and `protocol` defines it. A class is a plugin if it has at
    least one method for which `makes_plugin` is True. A plugin that has the method `name` must also
    have at least one method of each group in `needs_one_of`.
    """

    name: str
    point: str
    protocol: type
    makes_plugin: bool = True
    needs_one_of: tuple[tuple[str, ...], ...] = ()


_SCORES: Final = (("score", "score_columns"),)

METHODS: Final[tuple[Method, ...]] = (
    Method("pre_enqueue", "PreEnqueue", interface.PreEnqueuePlugin),
    Method("sort_key", "QueueSort", interface.QueueSortPlugin),
    Method("concerns", "PreFilter", interface.ShapeRelevance, makes_plugin=False),
    Method("pre_filter", "PreFilter", interface.PreFilterPlugin),
    # `add_pod` and `remove_pod` need each other. With only one of them, the PreFilter data would be
    # wrong after the first dry run.
    Method(
        "add_pod", "PreFilterExtensionAddPod", interface.PreFilterExtensions,
        makes_plugin=False, needs_one_of=(("pre_filter",), ("remove_pod",)),
    ),
    Method(
        "remove_pod", "PreFilterExtensionRemovePod", interface.PreFilterExtensions,
        makes_plugin=False, needs_one_of=(("pre_filter",), ("add_pod",)),
    ),
    Method("filter", "Filter", interface.FilterPlugin),
    Method("filter_columns", "Filter", interface.ColumnFilterPlugin),
    Method("post_filter", "PostFilter", interface.PostFilterPlugin),
    Method("is_eligible_victim", "Preemption", policy.VictimEligibility),
    Method("importance", "Preemption", policy.VictimImportance),
    Method("candidate_rules", "Preemption", policy.CandidateRanking),
    Method(
        "scores_alike", "Score", interface.ScoreRelevance,
        makes_plugin=False, needs_one_of=_SCORES,
    ),
    Method(
        "pre_score", "PreScore", interface.PreScorePlugin,
        makes_plugin=False, needs_one_of=_SCORES,
    ),
    Method("score", "Score", interface.ScorePlugin),
    Method("score_columns", "Score", interface.ColumnScorePlugin),
    Method(
        "epoch", "Score", interface.ScoreEpoch,
        makes_plugin=False, needs_one_of=_SCORES,
    ),
    Method(
        "normalize_scores", "ScoreExtensionNormalize", interface.ScoreNormalizer,
        makes_plugin=False, needs_one_of=_SCORES,
    ),
    Method("reserve", "Reserve", interface.ReservePlugin, needs_one_of=(("unreserve",),)),
    Method(
        "release_commands", "Unreserve", interface.Releaser,
        makes_plugin=False, needs_one_of=(("unreserve",),),
    ),
    Method("unreserve", "Unreserve", interface.ReservePlugin, needs_one_of=(("reserve",),)),
    Method("permit", "Permit", interface.PermitPlugin),
    Method("pre_bind", "PreBind", interface.PreBindPlugin),
    Method(
        "is_prepared", "PreBind", interface.Preparer,
        makes_plugin=False, needs_one_of=(("pre_bind",),),
    ),
    Method("bind", "Bind", interface.BindPlugin),
    Method("post_bind", "PostBind", interface.PostBindPlugin),
    Method("is_woken_by", "QueueingHint", cluster_event.QueueingHint, makes_plugin=False),
)  # fmt: skip

METHOD_NAMES: Final = tuple(method.name for method in METHODS)

# Methods and attributes that only built-in plugins may have. The guard around a user's plugin
# (`user_plugin.guard`) leaves them out.
BUILT_IN_METHODS: Final = (
    Method("filter_shapes", "Filter", points.ShapeFilterPlugin),
    Method("score_shapes", "Score", points.ShapeScorePlugin),
)
BUILT_IN_ATTRIBUTES: Final = (
    "reads_only_sums",
    "wakes_alike",
    "shape_key",
    "evaluates_every_node",
)

# Attributes that describe the plugin, in addition to its methods.
ATTRIBUTES: Final = ("events", "locality", "normalization")


def wrap_methods(
    plugin: Kind, wrap: Callable[[Method, BoundMethod], BoundMethod], *, as_built_in: bool = False
) -> Kind:
    """Return `plugin` with each of its methods replaced by `wrap(method, bound_method)`.

    The result implements the same Protocols as `plugin`. If `as_built_in` is set, the result also
    has the attributes and methods that only built-in plugins have, and `original_of(result)` is
    `plugin`. Otherwise, `original_of(result)` is the result itself.
    """
    namespace: dict[str, Any] = {"name": plugin.name, "__slots__": ()}
    if as_built_in:
        namespace["wrapped"] = plugin
    for attribute in ATTRIBUTES + (BUILT_IN_ATTRIBUTES if as_built_in else ()):
        if hasattr(plugin, attribute):
            value = getattr(plugin, attribute)
            namespace[attribute] = staticmethod(value) if callable(value) else value
    for method in METHODS + (BUILT_IN_METHODS if as_built_in else ()):
        bound_method = getattr(plugin, method.name, None)
        if bound_method is not None:
            namespace[method.name] = staticmethod(wrap(method, bound_method))
    return cast("Kind", type(type(plugin).__name__, (), namespace)())


def original_of(plugin: object) -> object:
    """Return the plugin that `plugin` wraps, or `plugin` itself if it wraps none.

    Two kinds of wrappers are removed: the result of `Meter.measured`, and the batch scheduler's
    PartialPlugin. The guard around a user's plugin is not removed.
    """
    return getattr(plugin, "wrapped", plugin)


def type_of(plugin: object) -> type:
    """Return the class of `original_of(plugin)`."""
    return type(original_of(plugin))
