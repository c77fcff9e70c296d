"""PluginChoice: reads which plugins a profile enables, with their weights.

upstream: pkg/scheduler/apis/config/v1/default_plugins.go: mergePluginSet;
pkg/scheduler/apis/config/validation/validation.go: validatePluginSetForInvalidPlugins
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.text.field_problem import duplicate, invalid
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.v1 import PluginForm, PluginSetForm, PluginsForm
from fairlead.engine.framework.plugin_order import POINTS, UPSTREAM_POINTS
from fairlead.engine.framework.profile import ALL, DEFAULT_PLUGINS, PointPlugins
from fairlead.engine.plugins.registry import GATED

WEIGHT_MAX: Final = (1 << 31) - 1
VERSION: Final = "kubescheduler.config.k8s.io/v1"
# Removed plugins that upstream refuses by name.
REMOVED: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
# Upstream's text contains the version of the core API, not the version of the configuration.
# upstream: validation.go: invalidPluginsByVersion
WAS_INVALID: Final = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{VERSION}")'
)
# Plugins that upstream has removed or that a feature gate adds. A configuration may disable them,
# without effect.
_ABSENT: Final = (
    *REMOVED,
    "GangScheduling",
    "NodeLabel",
    "NodePreferAvoidPods",
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio",
    "SelectorSpread",
    "ServiceAffinity",
)
_FIELDS: Final = {point[0].lower() + point[1:]: point for point in POINTS}

UsualWeight = Callable[[str], int | None]


class PluginChoice(Struct, frozen=True):
    """Reads the plugins of one profile, with their weights.

    `where` is the path of the section `plugins` in the file. `usual_weight` returns the default
    weight of a user's plugin, or None if the name is unknown. `default` are the plugins of a
    profile that has no section `plugins`.
    """

    where: str
    usual_weight: UsualWeight
    default: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS

    def everywhere(self, form: PluginSetForm) -> tuple[tuple[str, int], ...]:
        """Return (name, weight) of each plugin that is enabled at all points that it implements.

        `form` is the field multiPoint. The field disables default plugins, changes their weights,
        and enables other plugins. Raises ConfigurationError if a plugin is unknown or enabled
        twice, or its weight is invalid.
        """
        field = f"{self.where}.multiPoint"
        disabled = self._disabled(field, form)
        chosen: dict[str, int] = {}
        for place, entry in enumerate(form.enabled):
            at = f"{field}.enabled[{place}]"
            if entry.name in chosen:
                raise ConfigurationError(f"{at}.name", duplicate(entry.name))
            self._refuse_unknown(f"{at}.name", entry.name)
            chosen[entry.name] = self._weight(at, entry)
        kept = [] if ALL in disabled else [p for p in self.default if p[0] not in disabled]
        in_place = tuple((name, chosen.get(name, weight)) for name, weight in kept)
        named = dict(kept)
        return *in_place, *((name, w) for name, w in chosen.items() if name not in named)

    def at_points(self, form: PluginsForm) -> dict[str, PointPlugins]:
        """Return {extension point: plugins that the field of this point enables and disables}.

        The field `multiPoint` is not read. Raises ConfigurationError if a plugin is unknown, does
        not implement the point, or has an invalid weight.
        """
        points = {}
        for name, field in _named_fields():
            one: PluginSetForm = getattr(form, name)
            if one.enabled or one.disabled:
                points[_FIELDS[field]] = self._at_point(field, one)
        return points

    def _at_point(self, field: str, form: PluginSetForm) -> PointPlugins:
        where, point = f"{self.where}.{field}", _FIELDS[field]
        enabled = []
        for place, entry in enumerate(form.enabled):
            at = f"{where}.enabled[{place}]"
            self._refuse_unknown(f"{at}.name", entry.name)
            if point not in UPSTREAM_POINTS.get(entry.name, (point,)):
                problem = f'plugin "{entry.name}" does not extend {point}Plugin plugin'
                raise ConfigurationError(f"{at}.name", problem)
            enabled.append((entry.name, self._weight(at, entry) if point == "Score" else 0))
        return PointPlugins(tuple(enabled), self._disabled(where, form))

    def _disabled(self, where: str, form: PluginSetForm) -> tuple[str, ...]:
        for place, entry in enumerate(form.disabled):
            if entry.name not in (ALL, *_ABSENT):
                self._refuse_unknown(f"{where}.disabled[{place}].name", entry.name)
        return tuple(entry.name for entry in form.disabled)

    def _weight(self, field: str, entry: PluginForm) -> int:
        """Return the weight of a plugin; 0 if the plugin does not implement Score.

        If the file states no weight, a user's plugin has its default weight (`usual_weight`), and
        any other plugin has the weight 1.
        """
        if not 0 <= entry.weight <= WEIGHT_MAX:
            problem = invalid(entry.weight, f"not in valid range [0, {WEIGHT_MAX}]")
            raise ConfigurationError(f"{field}.weight", problem)
        if "Score" not in UPSTREAM_POINTS.get(entry.name, ("Score",)):
            return 0
        return entry.weight or self.usual_weight(entry.name) or 1

    def _refuse_unknown(self, field: str, name: str) -> None:
        gated_off = [one for one in GATED if one not in dict(self.default)]
        if name in gated_off:
            raise ConfigurationError(field, f"plugin {name!r} needs the feature gate {name}")
        if name in UPSTREAM_POINTS or self.usual_weight(name) is not None:
            return
        if name in REMOVED:
            raise ConfigurationError(field.removesuffix(".name"), invalid(name, WAS_INVALID))
        if name in _ABSENT:
            raise ConfigurationError(field, f"plugin {name!r} is not in Kubernetes any more")
        served = [one for one in UPSTREAM_POINTS if one not in gated_off]
        nearest = difflib.get_close_matches(name, served, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        known = ", ".join(served)
        problem = f"no plugin {name!r}; {hint}known: {known}"
        raise ConfigurationError(field, problem)


def _named_fields() -> Iterator[tuple[str, str]]:
    fields = zip(PluginsForm.__struct_fields__, PluginsForm.__struct_encode_fields__, strict=True)
    for name, field in fields:
        if field in _FIELDS:
            yield name, field
