"""Users' own plugins and actions for the batch scheduler, which options name."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.batch.batch_config import batch_config
from fairlead.whatif.configuration.batch.batch_file import (
    override_notes,
    read_batch_config,
    read_extensions,
)
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.input.error import InputError

SOURCE = """
class Order:
    name = "order"
    def __init__(self, context):
        self.arguments = context.arguments
    def job_order(self, job):
        return 0

class Plain:
    name = "plain"
    def task_order(self, task):
        return 0

class Act:
    name = "act"
    def execute(self, session):
        pass

class Picky:
    name = "picky"
    def __init__(self, one, two):
        pass
    def execute(self, session):
        pass

class Nothing:
    name = "nothing"

class Misspelt(Plain):
    def jobOrder(self, job):
        return 0

class Short:
    name = "short"
    def job_order(self):
        return 0

class Nameless:
    def execute(self, session):
        pass
"""
CONFIG = 'actions: "allocate, act"\ntiers:\n- plugins:\n  - {name: order, arguments: {a: 1}}\n'


@pytest.fixture
def mine(tmp_path):
    """Returns the result of --batch-plugin for a class."""
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "batch.yaml").write_text(CONFIG)
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


@pytest.fixture
def config(tmp_path, mine):
    return str(tmp_path / "batch.yaml")


def test_plugins_and_actions_are_distinguished(mine):
    found = read_extensions([mine("Order"), mine("Plain"), mine("Act")])
    assert (list(found.plugins), list(found.actions)) == (["order", "plain"], ["act"])


def test_a_configuration_can_name_user_plugins(config, mine):
    found = read_batch_config(config, [mine("Order"), mine("Act")])
    assert list(found.extensions.plugins) == ["order"]


def test_a_plugin_with_the_name_of_a_built_in_one_is_noted(tmp_path, config, mine):
    text = SOURCE.replace('"plain"', '"gang"')
    (tmp_path / "other.py").write_text(text)
    (tmp_path / "batch.yaml").write_text(CONFIG.replace("name: order", "name: gang"))
    plugins = [f"{tmp_path / 'other.py'}:Plain", mine("Act")]
    assert override_notes(read_batch_config(config, plugins)) == (
        "The batch plugin gang of --batch-plugin replaces the built-in one.",
    )


def test_a_configuration_that_names_a_missing_plugin_is_refused(config, mine):
    with pytest.raises(InputError, match="actions: no action 'act'; known: allocate"):
        read_batch_config(config)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["Nothing"], "Nothing has none of the methods allocatable, "),
        (["Nameless"], "Nameless has no name"),
        (["Picky"], "missing 2 required positional arguments"),
        (["Absent"], "has no Absent"),
        (["Misspelt"], "Misspelt has jobOrder, which is never called: it is spelled job_order"),
        (["Short"], r"Short must take job_order\(self, job\)"),
        (["Act", "Act"], "act is given twice"),
    ],
)
def test_an_invalid_plugin_class_is_refused(mine, names, problem):
    with pytest.raises(InputError, match=f"--batch-plugin: .*{problem}"):
        read_extensions(map(mine, names))


def test_a_plugin_that_the_configuration_does_not_name_is_refused(config, mine):
    with pytest.raises(InputError, match=r"plain is not named in .*batch\.yaml"):
        read_batch_config(config, [mine("Order"), mine("Act"), mine("Plain")])


def test_a_plugin_without_a_batch_configuration_is_refused(found, mine):
    with pytest.raises(InputError, match="--batch-plugin: needs a --batch-config"):
        batch_config(BatchOptions(None, (mine("Plain"),)), SchedulerConfig(), found())
