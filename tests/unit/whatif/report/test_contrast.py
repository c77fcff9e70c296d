"""The colours of the report have the contrast that WCAG 2.2 AA requires, in light and dark mode."""

from __future__ import annotations

import re
from itertools import combinations, product
from math import dist

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
    *(
        (one, on, TEXT)
        for one, on in product(("accent", "bad", "warn", "good", "cordon"), ("page", "card"))
    ),
    *(("accent", on, TEXT) for on in ("accent-soft", "track")),
    ("cordon", "cell-none", TEXT),
    *((one, "card", GRAPHICS) for one in COLOURS if one.startswith("priority-")),
    *((one, "card", GRAPHICS) for one in ("control", "fill", "over", "more", "less")),
]


# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
APART = 15  # CIE76: twice the just noticeable difference of adjacent areas


def linear(colour):
    """Linear red, green and blue of #rrggbb, from 0 to 1."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    ]


def luminance(colour):
    """The relative luminance of #rrggbb, from 0 to 1."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(colour, eyes):
    """The CIELAB coordinates of #rrggbb as `eyes` see it."""
    parts = linear(colour)
    red, green, blue = (
        min(max(sum(a * b for a, b in zip(row, parts, strict=True)), 0), 1) for row in EYES[eyes]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_colours_of_priorities_differ_for_colour_blind_readers(theme, eyes):
    colours = [pair[theme] for name, pair in COLOURS.items() if re.fullmatch(r"priority-\d", name)]
    assert len(colours) == 7
    for one, other in combinations(colours, 2):
        assert dist(lab(one, eyes), lab(other, eyes)) > APART, (one, other)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("colour", "on", "least"), PAIRS)
def test_each_colour_has_enough_contrast_with_its_background(colour, on, least, theme):
    brightest, darkest = sorted(
        (luminance(COLOURS[name][theme]) for name in (colour, on)), reverse=True
    )
    assert (brightest + 0.05) / (darkest + 0.05) >= least
