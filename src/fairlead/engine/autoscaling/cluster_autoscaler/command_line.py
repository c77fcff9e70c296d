"""The options in the command line of a Cluster Autoscaler.

Flags with invalid values are ignored, and so are flags that are not simulated, such as
--leader-elect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    AutoscalingOptions,
    OptionError,
    is_repeated,
    is_switch,
    parse_options,
)


def flags_of_command_line(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each flag in `words`.

    A flag and its value are written as --name=value. If the flag is not boolean, the flag and its
    value can also be two words. If no value is written, the value is "true".
    """
    name = ""  # the last flag, if its value may be the next word
    for word in words:
        if not word.startswith("--"):
            if name:
                yield name, word
            name = ""
            continue
        if name:
            yield name, "true"
        name, equals, value = word[2:].partition("=")
        if equals or is_switch(name):
            yield name, value if equals else "true"
            name = ""
    if name:
        yield name, "true"


def options_of_flags(flags: Iterable[tuple[str, str]]) -> AutoscalingOptions:
    """Return the options in `flags`; unsupported flags, such as --leader-elect, are ignored.

    Invalid and unsupported values are ignored, too. If a flag that may be repeated occurs several
    times, all its valid values are used.
    """
    known: dict[str, str] = {}
    for name, value in flags:
        try:
            parse_options({name: value})
        except OptionError:
            continue
        is_further = name in known and is_repeated(name)
        known[name] = f"{known[name]},{value}" if is_further else value
    return parse_options(known)
