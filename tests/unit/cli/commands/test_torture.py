"""The report of `fairlead torture`."""

from __future__ import annotations

import pytest

from fairlead.cli.commands import torture
from fairlead.testing.torture.campaign import CampaignSummary


@pytest.mark.parametrize(("runs", "words"), [(1, "1 seed, "), (2_000, "2,000 seeds, ")])
def test_the_number_of_seeds_agrees_with_its_noun(runs, words):
    assert torture._report(CampaignSummary(runs=runs, seconds=1))[0].startswith(words)
