"""text_cache: `lru_cache` for what users write, which may be long.

A cache of a thousand answers is small while texts are as long as they usually are. Nobody shall
fill it with a thousand texts of three megabytes: longer ones are read anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

CHARACTERS_MAX: Final = 256

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def text_cache(
    maxsize: int, characters_max: int = CHARACTERS_MAX
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Remember `maxsize` answers of a function, but none to a text beyond `characters_max`.

    Texts are looked for among the positional arguments.
    """

    def remembering(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        remembered = lru_cache(maxsize)(function)

        @wraps(function)
        def answer(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            for given in args:
                if isinstance(given, str) and len(given) > characters_max:
                    return function(*args, **kwargs)
            return remembered(*args, **kwargs)  # type: ignore[arg-type] # hashable, if it is ours

        return answer

    return remembering
