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

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def text_cache(
    maxsize: int, characters_max: int = CHARACTERS_MAX
) -> Callable[[Callable[Parameters, Answer]], Callable[Parameters, Answer]]:
    """Return a decorator that caches at most `maxsize` results of a function.

    A call is not cached if a positional text argument is longer than `characters_max`.
    """

    def decorator(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
        cached = lru_cache(maxsize)(function)
        if [one.kind for one in signature(function).parameters.values()] == [_POSITIONAL]:
            return cast("Callable[Parameters, Answer]", _of_one(function, cached, characters_max))

        @wraps(function)
        def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
            for given in args:
                if isinstance(given, str) and len(given) > characters_max:
                    return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type] # our arguments are hashable

        return answer

    return decorator


def _of_one(
    function: Callable[..., Answer], cached: Callable[..., Answer], characters_max: int
) -> Callable[[Hashable], Answer]:
    """Return the cached version of `function`, which has one parameter.

    The cached version needs no `*args`. It is therefore faster than the version for functions with
    several parameters in `text_cache`.
    """

    @wraps(function)
    def answer(given: Hashable) -> Answer:
        if isinstance(given, str) and len(given) > characters_max:
            return function(given)
        return cached(given)

    return answer
