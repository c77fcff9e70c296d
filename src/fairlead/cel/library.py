"""The environment in which expressions are compiled: CEL, its extensions, Kubernetes' functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from fairlead.cel import address, amount, collection, retold_function, url
from fairlead.cel.function import ANY, LIST, MAP, REAL, TEXT, TRUTH, VALUE, WHOLE, Function

if TYPE_CHECKING:
    from cel_expr_python import cel


# Of longer expressions no programs are kept: one may hold fifty times what its text does.
KEPT_CHARACTERS_MAX: Final = 2_048


_USUAL: Final = (
    *(*amount.FUNCTIONS, *address.FUNCTIONS, *url.FUNCTIONS, *collection.FUNCTIONS),
    *retold_function.FUNCTIONS,
)
# The names of the functions that are written in Python.
OURS: Final = frozenset(one.name for one in _USUAL)
# Extensions of the library by their names, all of whose functions upstream has.
PARTS: Final = ("cel.lib.ext.comprev2", "cel.lib.ext.lists", "cel.lib.ext.sets")

BINDINGS: Final = "cel.lib.ext.bindings"


def environment(variables: Mapping[str, str], more: Sequence[Function] = ()) -> cel.Env:
    """The environment that knows `variables`, by their types as the library writes them.

    `more` are functions besides Kubernetes' usual ones.
    """
    return configured(variables, (*PARTS, BINDINGS), (*_USUAL, *more))


def configured(
    variables: Mapping[str, str], parts: Sequence[str], functions: Sequence[Function]
) -> cel.Env:
    """An environment with these extensions and functions, and optional values and texts."""
    # The library takes a hundredth of a second to load, and most clusters have no expressions.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_optional, ext_strings  # noqa: PLC0415

    listed = "".join(f"\n  - name: {part}" for part in parts)
    config = cel.NewEnvConfigFromYaml(f"extensions:{listed or ' []'}\n")
    return cel.NewEnv(
        config=config,
        variables={name: cel.Type(kind) for name, kind in variables.items()},
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings(2)],
        functions=_declared(cel, functions),
    )


def _declared(library: Any, functions: Sequence[Function]) -> list[Any]:
    types = library.Type
    known = {
        TEXT: types.STRING,
        WHOLE: types.INT,
        REAL: types.DOUBLE,
        TRUTH: types.BOOL,
        ANY: types.DYN,
        LIST: types.List(types.DYN),
        VALUE: types.Map(types.STRING, types.DYN),
        MAP: types.Map(types.DYN, types.DYN),
    }

    def overload(at: int, function: Function) -> Any:
        return library.Overload(
            id=f"{function.name}_{at}",
            return_type=known[function.result],
            parameters=[known[one] for one in function.taken],
            is_member=function.is_member,
            impl=function.does,
        )

    named = groupby(sorted(functions, key=attrgetter("name")), key=attrgetter("name"))
    return [
        library.FunctionDecl(name, [overload(at, one) for at, one in enumerate(group)])
        for name, group in named
    ]
