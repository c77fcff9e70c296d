"""The colours of the report have the contrast that WCAG 2.2 AA demands, in light and in dark."""

from __future__ import annotations

import re
from itertools import product

import pytest

from fairlead.whatif.report.write import asset

COLOURS = {
    name: colours
    for name, *colours in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", asset("base.css")
    )
}
TEXT = 4.5
GRAPHICS = 3.0
PAIRS = [
    *((one, on, TEXT) for one, on in product(("ink", "ink-2"), ("page", "card", "track"))),
    *((one, on, TEXT) for one, on in product(("accent", "warn", "cordon"), ("page", "card"))),
    *(("accent", on, TEXT) for on in ("accent-soft", "track")),
    ("cordon", "cell-none", TEXT),
    *((one, "card", GRAPHICS) for one in COLOURS if one.startswith("priority-")),
    *((one, "card", GRAPHICS) for one in ("control", "fill", "over", "more", "less")),
]


def luminance(colour):
    """The relative luminance of #rrggbb, from 0 to 1."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("colour", "on", "least"), PAIRS)
def test_a_colour_stands_out_from_what_is_behind_it(colour, on, least, theme):
    brightest, darkest = sorted(
        (luminance(COLOURS[name][theme]) for name in (colour, on)), reverse=True
    )
    assert (brightest + 0.05) / (darkest + 0.05) >= least
