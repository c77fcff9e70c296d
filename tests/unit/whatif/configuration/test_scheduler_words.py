"""Answers name the scheduler's configuration."""

from __future__ import annotations

import pytest

from fairlead.whatif.configuration.scheduler_words import scheduler_words


@pytest.mark.parametrize(
    ("config", "plugins", "batch", "expected"),
    [
        ("", (), "", "default scheduler"),
        ("s.yaml", (), "", "scheduler s.yaml"),
        ("", ("p.py:A", "B"), "b", "default scheduler with p.py:A, B, batch configuration b"),
    ],
)
def test_the_words_name_files_and_plugins(config, plugins, batch, expected):
    assert scheduler_words(config, plugins, batch) == expected
