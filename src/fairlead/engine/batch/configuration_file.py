"""The scheduler's configuration file, in the format of kube-batch and Volcano.

    actions: "allocate, backfill"
    tiers:
    - plugins:
      - name: gang
        enableJobOrder: false
        arguments: {key: value}

Fairlead also reads these keys:

    name              the configuration's own name (not evaluated)
    rules             `kube-batch` or `fairlead` (`engine.batch.rules`)
    defects           `upstream` reproduces kube-batch's bugs, `fixed` does not
                      (`engine.batch.defect`)
    overshoot         whether a queue below its share of one resource may exceed its share of
                      others; the default is false for configurations with Volcano's own actions or
                      plugins
    victims           `gangs` allows evicting a gang as a whole if it cannot spare single members;
                      `pods` does not; the default depends on `rules`
    starvationBound   time after which a waiting gang gets a reservation; by default never
    brokenGangGrace   time for which a gang may run with too few members before the remaining
                      members are evicted; by default forever
    schedulerNames    the scheduler names of the pods to schedule (a flag of kube-batch)
    defaultQueue      the queue of groups without a queue (a flag of kube-batch)
    schedulePeriod    the minimum time between two sessions (a flag of kube-batch)

Unknown keys, and unknown values of `rules`, `defects` and `victims`, are refused with a list of the
known ones. Unknown actions and plugins are refused later, by `engine.batch.compose`. Some keys of
Volcano are accepted and ignored: `configurations` of actions, `metrics` (where Volcano reads the
usage of nodes), and switches for functions that Fairlead lacks.

upstream: pkg/scheduler/conf/scheduler_conf.go, pkg/scheduler/util.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.yaml_documents import YamlError, documents
from fairlead.api.timestamp import parse_duration
from fairlead.engine.batch.defect import DEFECTS, FIXED, BatchDefects, Defect
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.batch.rules import KUBE_BATCH_RULES, RULES, BatchRules
from fairlead.engine.batch.session.tier import SWITCHES, PluginOption, Tier
from fairlead.engine.core.instant import to_seconds

KUBE_BATCH_DEFAULT: Final = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

# Fairlead's own default: all actions except enqueue. drf only orders jobs, because preemption
# compares job priorities.
FAIRLEAD_DEFAULT: Final = """\
name: fairlead
rules: fairlead
starvationBound: 10m
brokenGangGrace: 1m
actions: "allocate, reclaim, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

# kube-batch's own default, with its defects.
KUBE_BATCH_UPSTREAM: Final = f"name: kube-batch-upstream\ndefects: upstream\n{KUBE_BATCH_DEFAULT}"

# Volcano's own default.
VOLCANO_DEFAULT: Final = """\
name: volcano
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

SHIPPED: Final = {
    "kube-batch": KUBE_BATCH_DEFAULT,
    "kube-batch-upstream": KUBE_BATCH_UPSTREAM,
    "volcano": VOLCANO_DEFAULT,
    "fairlead": FAIRLEAD_DEFAULT,
}
# The configuration that is used if the user does not choose one.
RECOMMENDED: Final = "fairlead"

_TOP: Final = (
    "actions",
    "brokenGangGrace",
    "configurations",
    "defaultQueue",
    "defects",
    "metrics",
    "name",
    "overshoot",
    "rules",
    "schedulePeriod",
    "schedulerNames",
    "starvationBound",
    "tiers",
    "victims",
)
# The actions and plugins of Fairlead that Volcano has and kube-batch lacks.
_OF_VOLCANO: Final = frozenset(("binpack", "enqueue", "overcommit"))
SCHEDULE_PERIOD_S: Final = 1.0
_TAKES_WHOLE_GANGS: Final = {"gangs": True, "pods": False}
# The limit of weights, so that sums of weights times scores fit 64 bits.
_NUMBER_MAX: Final = 2**31 - 1
_DIGITS_MAX: Final = 40
_PLUGIN: Final = ("arguments", "name", *SWITCHES)


class BatchConfigurationError(ValueError):
    """Raised if the configuration cannot be used; the message contains the field and the reason."""


class BatchConfig(Struct, frozen=True, kw_only=True):
    """The configuration of a batch controller.

    `schedule_period_s` is the minimum time between two sessions. `starvation_bound_s` is the time
    after which a waiting gang gets a reservation. `broken_gang_grace_s` is the time after which a
    gang that runs with too few members is evicted. `starvation_bound_s` and `broken_gang_grace_s`
    can be None, which means never, as in kube-batch. `extensions` may replace built-in plugins and
    actions.
    """

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...]
    rules: BatchRules = KUBE_BATCH_RULES
    defects: BatchDefects = FIXED
    ownership: Ownership = field(default_factory=Ownership)
    schedule_period_s: float = SCHEDULE_PERIOD_S
    starvation_bound_s: float | None = None
    broken_gang_grace_s: float | None = None
    extensions: Extensions = field(default_factory=Extensions)


def read_configuration(text: str) -> BatchConfig:
    """Return the configuration in `text` (YAML), or kube-batch's default if `text` is empty.

    Raises BatchConfigurationError if the configuration cannot be used.
    """
    try:
        found = list(documents(text))
    except YamlError as cause:
        raise BatchConfigurationError(f"not YAML: {cause}") from None
    if len(found) > 1:
        raise BatchConfigurationError(f"contains {len(found)} documents; expected one")
    raw = found[0] if found else None
    return configuration_from(raw) if raw is not None else read_configuration(KUBE_BATCH_DEFAULT)


def shipped_configuration(name: str) -> BatchConfig:
    """Return the configuration `name` that is shipped with Fairlead.

    Raises BatchConfigurationError if the name is unknown.
    """
    if name not in SHIPPED:
        raise BatchConfigurationError(f"no configuration {name!r}; {_known(SHIPPED)}")
    return read_configuration(SHIPPED[name])


def configuration_from(raw: object) -> BatchConfig:
    """Return the configuration in the JSON value `raw`.

    Raises BatchConfigurationError if it cannot be used. The names of actions and plugins are not
    checked.
    """
    top = _mapping(raw, "configuration")
    _refuse_unknown(top, _TOP, "configuration")
    period = _duration(top.get("schedulePeriod"), "schedulePeriod")
    actions = _actions(top.get("actions", ""))
    tiers = tuple(
        _tier(tier, f"tiers[{i}]") for i, tier in enumerate(_list(top.get("tiers"), "tiers"))
    )
    return BatchConfig(
        ownership=_ownership(top),
        schedule_period_s=SCHEDULE_PERIOD_S if period is None else period,
        actions=actions,
        tiers=tiers,
        rules=_rules(top),
        defects=_defects(top, {*actions, *(option.name for tier in tiers for option in tier)}),
        starvation_bound_s=_duration(top.get("starvationBound"), "starvationBound"),
        broken_gang_grace_s=_duration(top.get("brokenGangGrace"), "brokenGangGrace"),
    )


def _defects(top: Json, names: Collection[str]) -> BatchDefects:
    """Return the defects that `top` selects; `names` are the configured actions and plugins.

    By default, the defect `overshoot` is off if `names` contains an action or plugin that only
    Volcano has. In Volcano, unlike in kube-batch, tasks must fit into the share of their queue.
    upstream: volcano: pkg/scheduler/plugins/proportion/proportion.go: AddAllocatableFn
    """
    defects = DEFECTS[_choice(top, "defects", DEFECTS, "fixed")]
    overshoot = _switch(top.get("overshoot", _OF_VOLCANO.isdisjoint(names)), "overshoot")
    return defects if overshoot else defects.without((Defect.OVERSHOOT,))


def _ownership(top: Json) -> Ownership:
    default = Ownership()
    queue = top.get("defaultQueue", default.default_queue)
    if not isinstance(queue, str) or not queue:
        raise BatchConfigurationError(
            f"defaultQueue: expected the name of a queue, found {queue!r}"
        )
    names = top.get("schedulerNames", list(default.scheduler_names))
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise BatchConfigurationError(f"schedulerNames: expected a list of names, found {names!r}")
    return Ownership(tuple(names), queue)


def _rules(top: Json) -> BatchRules:
    rules = RULES[_choice(top, "rules", RULES, KUBE_BATCH_RULES.name)]
    if "victims" not in top:
        return rules
    victims = _choice(top, "victims", _TAKES_WHOLE_GANGS, "")
    return replace(rules, takes_whole_gangs=_TAKES_WHOLE_GANGS[victims])


def _choice(top: Json, key: str, known: Collection[str], default: str) -> str:
    found = top.get(key, default)
    if not isinstance(found, str) or found not in known:
        raise BatchConfigurationError(f"{key}: {found!r} is not a known value; {_known(known)}")
    return found


def _duration(value: object, path: str) -> float | None:
    if value is None:
        return None
    try:
        duration = parse_duration(value) if isinstance(value, str) else -1
    except ValueError:
        duration = -1
    if duration < 0:
        raise BatchConfigurationError(f"{path}: expected a duration such as 10m, found {value!r}")
    return to_seconds(duration)


def _actions(text: object) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise BatchConfigurationError(
            f"actions: expected a string of names separated by commas, found {text!r}"
        )
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _tier(raw: object, path: str) -> Tier:
    tier = _mapping(raw, path)
    _refuse_unknown(tier, ("plugins",), path)
    plugins = _list(tier.get("plugins"), f"{path}.plugins")
    return tuple(_plugin(one, f"{path}.plugins[{i}]") for i, one in enumerate(plugins))


def _plugin(raw: object, path: str) -> PluginOption:
    plugin = _mapping(raw, path)
    _refuse_unknown(plugin, _PLUGIN, path)
    name = plugin.get("name")
    if not isinstance(name, str) or not name:
        raise BatchConfigurationError(f"{path}.name: expected the name of a plugin, found {name!r}")
    return PluginOption(
        name,
        frozenset(s for s in SWITCHES if not _switch(plugin.get(s, True), f"{path}.{s}")),
        _arguments(plugin.get("arguments"), f"{path}.arguments"),
    )


def _switch(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise BatchConfigurationError(f"{path}: expected true or false, found {value!r}")
    return value


def _arguments(raw: object, path: str) -> dict[str, str]:
    """Return the plugin arguments in `raw` as strings; `path` is their path in error messages.

    Booleans become `true` and `false`. Raises BatchConfigurationError if `raw` is not a mapping, if
    a value is a list or a mapping, or if an integer does not fit 32 bits.
    """
    if raw is None:
        return {}
    for key, value in _mapping(raw, path).items():
        if isinstance(value, list | dict):
            raise BatchConfigurationError(
                f"{path}.{key}: expected a text, a number or a boolean, found {value!r}"
            )
    found = {str(key): _text(value) for key, value in _mapping(raw, path).items()}
    for key, text in found.items():
        digits = text.strip().lstrip("+-")
        if digits.isdecimal() and (len(digits) > _DIGITS_MAX or int(digits) > _NUMBER_MAX):
            raise BatchConfigurationError(
                f"{path}.{key}: {text[:_DIGITS_MAX]} does not fit 32 bits"
            )
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mapping(raw: object, path: str) -> Json:
    if not isinstance(raw, dict):
        raise BatchConfigurationError(f"{path}: expected a mapping, found {raw!r}")
    return raw


def _list(raw: object, path: str) -> list[object]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise BatchConfigurationError(f"{path}: expected a list, found {raw!r}")
    return raw


def _refuse_unknown(found: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    unknown = next((key for key in found if key not in known), None)
    if unknown is not None:
        raise BatchConfigurationError(f"{path}: no field {unknown!r}; {_known(known)}")


def _known(names: Iterable[str]) -> str:
    return f"known: {', '.join(sorted(names))}"
