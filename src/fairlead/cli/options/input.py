"""The option --max-input, which limits the size of a dump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token

from fairlead.cli.options.parameter import CLUSTER


def size(_: type, tokens: Sequence[Token]) -> int:
    """Return the size in `tokens`, such as 4Gi or 500M, in bytes.

    Raises ValueError if it is not a positive whole number of bytes.
    """
    from fairlead.api.quantity import NANOS_PER_UNIT, QuantityError, parse_quantity

    text = tokens[0].value
    try:
        found = parse_quantity(text)
    except QuantityError:
        raise ValueError(f"{text!r} is not a size such as 4Gi") from None
    if found.nano % NANOS_PER_UNIT:  # The suffix m means a thousandth.
        problem = "is not a whole number of bytes; 1Mi is a mebibyte, 1M a megabyte"
        raise ValueError(f"{text!r} {problem}")
    if found.whole <= 0:
        raise ValueError(f"{text!r} is not a positive size")
    return found.whole


MaxInput = Annotated[
    int | None,
    Parameter(
        help="Refuse a dump or a cluster whose objects take more than SIZE bytes, such as 4Gi "
        "(default: 2Gi).",
        metavar="SIZE",
        converter=size,
        show_default=False,
        group=CLUSTER,
    ),
]
