"""Which label keys and values may be typing errors for others."""

from __future__ import annotations

import pytest

from fairlead.api.text.misspelling import is_misspelling

ERRORS = {
    "a doubled letter": ("sssd", "ssd"),
    "a doubled letter in a word of one letter": ("eu-1aa", "eu-1a"),
    "a letter too many": ("gpus", "gpu"),
    "a missing letter": ("prd", "prod"),
    "swapped letters": ("topology.kuberentes.io/zone", "topology.kubernetes.io/zone"),
    "another letter": ("topology.kubernetes.io/zune", "topology.kubernetes.io/zone"),
    "a separator": ("disk-type", "disktype"),
    "another separator": ("node_pool", "node-pool"),
    "upper case": ("SSD", "ssd"),
}
DIFFERENT = {
    "equal texts": ("ssd", "ssd"),
    "another digit": ("pool-1", "pool-2"),
    "a digit more": ("pool-11", "pool-1"),
    "a separator between digits": ("1.28", "12.8"),
    "another letter of a short word": ("eu-1a", "eu-1b"),
    "a letter more after a digit": ("m5a.large", "m5.large"),
    "another first letter": ("cpu", "gpu"),
    "a missing first letter": ("xlarge", "large"),
    "another letter of a word of three letters": ("dev", "dew"),
    "swapped letters of a word of two letters": ("ab-pool", "ba-pool"),
    "swapped letters around a digit": ("ax1", "a1x"),
    "two errors": ("us-east-1", "us-west-1"),
    "nothing in common": ("gpu", "a100"),
    "an empty text": ("", "ssd"),
    "a part": ("zone", "topology.kubernetes.io/zone"),
}


@pytest.mark.parametrize(("given", "known"), ERRORS.values(), ids=ERRORS)
def test_a_small_difference_within_a_word_may_be_a_typing_error(given, known):
    assert is_misspelling(given, known)
    assert is_misspelling(known, given)


@pytest.mark.parametrize(("given", "known"), DIFFERENT.values(), ids=DIFFERENT)
def test_names_that_may_differ_on_purpose_are_no_typing_errors(given, known):
    assert not is_misspelling(given, known)
    assert not is_misspelling(known, given)
