"""RelativeAmount: a change of a request or limit in percent, such as -20% in `cpu=-20%`.

    500m -20%    400m        100m +25%    125m
    4Gi  -20%    3277Mi      1Gi  +50%    1536Mi

The result is rounded up: CPU to a whole millicore, and memory and ephemeral storage to a whole MiB.
Other resources cannot be changed in percent, because only some of their amounts are valid. Devices
are counted in whole numbers, and huge pages in multiples of the page size.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import Format, Quantity, QuantityError, canonical, parse_quantity

_FORM: Final = re.compile(r"[+-][0-9]{1,4}(\.[0-9]{1,4})?%")
_LEAST: Final = -100
_BYTES: Final = (10**9 << 20, Format.BINARY_SI)  # 1 MiB in nanos
# {resource: (the step to which its amounts are rounded, in nanos, and how they are written)}
_ROUNDED: Final = {
    "cpu": (10**6, Format.DECIMAL_SI),
    "memory": _BYTES,
    "ephemeral-storage": _BYTES,
}
SIGN: Final = "%"


class RelativeAmount(Struct, frozen=True):
    """A change of amounts of `resource` by `percent`; `text` is the change as the user wrote it."""

    resource: str
    percent: Fraction
    text: str

    def of(self, amount: Quantity) -> str:
        """Return the text of `amount` after the change in percent, rounded up.

        If the change is 0%, `amount` is not rounded.
        """
        if not self.percent:
            return canonical(amount)
        step, family = _ROUNDED[self.resource]
        steps = ceil(amount.nano * (100 + self.percent) / (100 * step))
        return canonical(Quantity(nano=steps * step, format=family))


def relative_amount(resource: str, text: str) -> RelativeAmount:
    """Return the change of `resource` that `text` describes. `text` ends with %.

    Raises QuantityError.
    """
    if resource not in _ROUNDED:
        known = ", ".join(_ROUNDED)
        raise QuantityError(text, why=f"only these resources can change in percent: {known}")
    if not _FORM.fullmatch(text):
        why = "a percentage needs a sign and at most four digits, such as -20% or +10%"
        raise QuantityError(text, why=why)
    percent = Fraction(text.removesuffix(SIGN))
    if percent < _LEAST:
        raise QuantityError(text, why=f"an amount cannot shrink by more than {-_LEAST}%")
    return RelativeAmount(resource, percent, text)


def stated_amount(resources: Json, part: str, resource: str) -> Quantity | None:
    """Return the amount of `resource` in `resources`, the field `resources` of a container.

    `part` is `requests` or `limits`. If there is no request, return the limit, which becomes the
    request of new pods. Return None if there is no request and no limit.

    upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Pod
    """
    for one in (part, "limits"):
        text = (resources.get(one) or {}).get(resource)
        if text is not None:
            return parse_quantity(text)
    return None
