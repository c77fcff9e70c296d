"""Notes about arguments of batch plugins that have no effect."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.batch.plugins.registry import ARGUMENT_READERS, PluginContext, Readers
from fairlead.engine.batch.session.tier import PluginOption

# Keys of one plugin have their beginning or end in common, so only a small difference is a typo.
_CUTOFF: Final = 0.85


def argument_notes(config: BatchConfig) -> Iterator[str]:
    """Yield a note about each argument in `config` that is unknown here or has an invalid value.

    The arguments of users' plugins are not checked, because their constructors read them.
    """
    for tier in config.tiers:
        for option in tier:
            if option.name not in config.extensions.plugins:
                yield from _notes(config, option)


def _notes(config: BatchConfig, option: PluginOption) -> Iterator[str]:
    context = PluginContext(config.rules, config.defects, option.arguments)
    readers_of = ARGUMENT_READERS.get(option.name)
    readers: Readers = readers_of(context) if readers_of else {}
    for key, text in option.arguments.items():
        reader = readers.get(key)
        if reader is None:
            yield (
                f"The argument {key} of the batch plugin {option.name} has no effect here"
                f"{_hint(key, readers)}"
            )
        elif reader.parse(text) is None:
            yield (
                f"The argument {key} of the batch plugin {option.name} has its default value, "
                f"because {text!r} is not {reader.expected}."
            )


def _hint(key: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if nearest := difflib.get_close_matches(key, names, n=1, cutoff=_CUTOFF):
        return f"; did you mean {nearest[0]}?"
    return f"; known: {', '.join(names)}." if names else "; the plugin has no arguments here."
