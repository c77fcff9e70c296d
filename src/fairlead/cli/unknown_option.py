"""option_hint: what a user probably meant by an option that a command does not have.

1  the command reads a scenario with a field for the option   use the scenario's field …
2  the command has an option with nearly the same spelling    --drian: did you mean --drain?
3  other commands have the option                             it is an option of fairlead whatif
   (for --apply of a planning command, with further text)     ...; to add new objects, put ...
4  options of the command begin with the text                 --fail: did you mean --fail-on, ...?
5  the command has an option with a similar spelling          did you mean --nodes?
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from fairlead.api.text.name_list import listed

_SIMILARITY_MIN: Final = 0.85  # ratio of difflib; one or two wrong characters
_SIMILAR: Final = 0.75
_BEGINNING_MIN: Final = len("--xx")  # the shortest text that counts as the beginning of an option
_NAMED_MAX: Final = 4
_OF_SCENARIOS: Final = ("simulate", "sweep")
_PLANS: Final = ("fit", "size", "consolidate", "rebalance", "drain-plan", "upgrade-check")
_INSTEAD_OF_APPLY: Final = (
    "; to add new objects, put the dump and their file into one folder, and name it as SNAPSHOT"
)
_SCENARIO_FIELDS: Final = {
    "--config": "settings.scheduler",
    "--autoscale": "settings.autoscale",
    "--node-groups": "settings.node-groups",
    "--node-pools": "settings.node-pools",
    "--instance-types": "settings.instance-types",
    "--provision-time": "settings.provision-time",
    "--startup-time": "settings.kubelet.start-delay",
    "--load": "load",
    "--duration": "duration",
    **dict.fromkeys(
        (
            "--apply",
            "--delete",
            "--scale",
            "--cordon",
            "--drain",
            "--fail-zone",
            "--fail-node",
            "--fail-fraction",
            "--flap",
        ),
        "events",
    ),
}


def option_hint(
    command: str,
    option: str,
    own: Iterable[str],
    commands_with: Callable[[str], Sequence[str]],
) -> str:
    """Return what a user of `command` probably meant by `option`: `did you mean --drain?`.

    `own` are the options of the command, and `commands_with` returns the names of the other
    commands that have an option. Return "" if nothing is likely.
    """
    if command in _OF_SCENARIOS and option in _SCENARIO_FIELDS:
        return f"use the scenario's field {_SCENARIO_FIELDS[option]}"
    known = sorted(own)
    if option == "-n" and "--namespace" in known:
        return "did you mean --namespace?"
    nearly_equal = get_close_matches(option, known, n=1, cutoff=_SIMILARITY_MIN)
    longer = [one for one in known if one.startswith(option)]
    if nearly_equal:
        return _did_you_mean(longer if nearly_equal[0] in longer else nearly_equal)
    if others := commands_with(option):
        return f"it is an option of fairlead {listed(others, _NAMED_MAX)}{_way(command, option)}"
    if longer and len(option) >= _BEGINNING_MIN:
        return _did_you_mean(longer)
    return _did_you_mean(get_close_matches(option, known, n=1, cutoff=_SIMILAR))


def _way(command: str, option: str) -> str:
    """Return how a user of `command` can do what other commands do with `option`; "" if unknown."""
    if command in _PLANS and option == "--apply":
        return _INSTEAD_OF_APPLY
    return ""


def _did_you_mean(options: Collection[str]) -> str:
    *most, last = [*options][:_NAMED_MAX] or [""]
    if len(options) > _NAMED_MAX:
        return f"did you mean {listed([*options], _NAMED_MAX)}?"
    names = f"{', '.join(most)} or {last}" if most else last
    return f"did you mean {names}?" if names else ""
