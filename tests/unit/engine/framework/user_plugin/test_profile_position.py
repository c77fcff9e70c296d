"""Where `--plugin` puts a plugin."""

from __future__ import annotations

from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.user_plugin.plugin_factory import with_plugin


class Scorer:
    def score(self, state, pod, node): ...


class Sorter:
    def sort_key(self, pod, timestamp): ...


def test_behind_the_default_plugins_but_before_the_binder_that_takes_every_pod() -> None:
    placed = with_plugin(Profile(), "Scorer", Scorer, 5).plugins
    assert placed == (*DEFAULT_PLUGINS[:-1], ("Scorer", 5), DEFAULT_PLUGINS[-1])


def test_one_after_the_other() -> None:
    first = with_plugin(Profile(plugins=()), "A", Scorer, 1)
    assert with_plugin(first, "B", Scorer, 1).plugins == (("A", 1), ("B", 1))


def test_another_order_of_the_queue_takes_the_place_of_the_usual_one() -> None:
    names = [name for name, _ in with_plugin(Profile(), "Sorter", Sorter, 1).plugins]
    assert "Sorter" in names
    assert "PrioritySort" not in names
