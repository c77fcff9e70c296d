"""The position of a plugin of `--plugin` in the profile."""

from __future__ import annotations

from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.user_plugin.plugin_factory import with_plugin


class Scorer:
    def score(self, state, pod, node): ...


class Sorter:
    def sort_key(self, pod, timestamp): ...


def test_a_plugin_comes_after_the_default_plugins_and_before_default_binder() -> None:
    placed = with_plugin(Profile(), "Scorer", Scorer, 5).plugins
    assert placed == (*DEFAULT_PLUGINS[:-1], ("Scorer", 5), DEFAULT_PLUGINS[-1])


def test_plugins_are_in_the_order_of_the_command_line() -> None:
    first = with_plugin(Profile(plugins=()), "A", Scorer, 1)
    assert with_plugin(first, "B", Scorer, 1).plugins == (("A", 1), ("B", 1))


def test_a_queue_sort_plugin_replaces_priority_sort() -> None:
    names = [name for name, _ in with_plugin(Profile(), "Sorter", Sorter, 1).plugins]
    assert "Sorter" in names
    assert "PrioritySort" not in names
