"""Validation of label keys and values."""

from __future__ import annotations

import pytest

from fairlead.api.label import label_key_problems, label_value_problems, subdomain_problems


@pytest.mark.parametrize("value", ["", "a", "A-b_c.9", "0", "x" * 63])
def test_valid_values_have_no_problems(value):
    """A value may be empty, has alphanumeric ends, and has at most 63 bytes."""
    assert label_value_problems(value) == ()


@pytest.mark.parametrize("value", ["-5", "a-", " ", "a b", "ä", "a/b", "a\n"])
def test_invalid_values_have_one_problem(value):
    """The characters or the ends are invalid."""
    (problem,) = label_value_problems(value)
    assert problem.startswith("a valid label must be an empty string or consist of alphanumeric")


def test_a_long_value_is_refused_with_the_limit():
    """The length is counted in bytes, as upstream does."""
    assert label_value_problems("x" * 64) == ("must be no more than 63 bytes",)


@pytest.mark.parametrize("key", ["a", "app.kubernetes.io/name", "a-b_c.D", "1", "x" * 63])
def test_valid_keys_have_no_problems(key):
    """A DNS subdomain may precede the name."""
    assert label_key_problems(key) == ()


@pytest.mark.parametrize(
    ("key", "starts"),
    [
        ("", ("name part must be non-empty", "name part must consist of")),
        ("a/", ("name part must be non-empty", "name part must consist of")),
        ("/a", ("prefix part must be non-empty",)),
        ("A.b/c", ("prefix part a lowercase RFC 1123 subdomain must consist of",)),
        ("a/b/c", ("a valid label key must consist of",)),
        ("a b", ("name part must consist of",)),
        ("x" * 64, ("name part must be no more than 63 bytes",)),
    ],
)
def test_all_problems_of_an_invalid_key_are_reported(key, starts):
    """The problems of the prefix precede those of the name."""
    problems = label_key_problems(key)
    assert len(problems) == len(starts)
    assert all(map(str.startswith, problems, starts))


def test_subdomains_are_lower_case_and_bounded():
    """This rule applies to most names of objects."""
    assert subdomain_problems("high-priority.v2") == ()
    assert len(subdomain_problems("High")) == 1
    assert subdomain_problems("a" * 254) == ("must be no more than 253 bytes",)
