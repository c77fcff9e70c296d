"""Changes as users ask for them."""

from __future__ import annotations

from fairlead.whatif.change.cluster_change import ClusterChange


def test_words_are_the_options_of_the_command_line():
    change = ClusterChange(drain=("a", "b"), new_config="s.yaml", apply=("f",))
    assert change.words == ["--apply f", "--drain a", "--drain b", "--new-config s.yaml"]
