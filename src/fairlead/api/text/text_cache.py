"""text_cache: an `lru_cache` for functions whose arguments are text from users.

Results for long texts are not cached. Otherwise a cache of a thousand texts of three megabytes each
could fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Final, ParamSpec, TypeVar, cast

CHARACTERS_MAX: Final = 256
_POSITIONAL: Final = Parameter.POSITIONAL_OR_KEYWORD

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def text_cache(
    maxsize: int, characters_max: int = CHARACTERS_MAX
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Return a decorator that caches at most `maxsize` results of a function.

    A call is not cached if a positional text argument is longer than `characters_max`.
    """

    def remembering(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        remembered = lru_cache(maxsize)(function)
        if [one.kind for one in signature(function).parameters.values()] == [_POSITIONAL]:
            return cast("Callable[Given, Answer]", _of_one(function, remembered, characters_max))

        @wraps(function)
        def answer(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            for given in args:
                if isinstance(given, str) and len(given) > characters_max:
                    return function(*args, **kwargs)
            return remembered(*args, **kwargs)  # type: ignore[arg-type] # our arguments are hashable

        return answer

    return remembering


def _of_one(
    function: Callable[..., Answer], remembered: Callable[..., Answer], characters_max: int
) -> Callable[[Hashable], Answer]:
    """Return the cached version of a function that has one parameter.

    It is faster than the general version, because it needs no `*args`.
    """

    @wraps(function)
    def answer(given: Hashable) -> Answer:
        if isinstance(given, str) and len(given) > characters_max:
            return function(given)
        return remembered(given)

    return answer
