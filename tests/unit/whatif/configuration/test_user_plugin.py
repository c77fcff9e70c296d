"""Users' plugins: how they are found, in which order they run, and how errors are reported."""

from __future__ import annotations

import sys

import pytest

from fairlead.engine.framework.profile import DEFAULT_PLUGINS
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError

SOURCE = """\
import msgspec
class Cheap:
    name = "Cheap"
    class Args(msgspec.Struct):
        label: str = "price"
    def __init__(self, args):
        self.label = args.label
    def score(self, state, pod, node):
        return 0
class Sorter:
    name = "Sorter"
    def sort_key(self, pod, timestamp):
        return (timestamp,)
class Gate:
    name = "Gate"
    def pre_enqueue(self, pod):
        return None
class Twin(Gate):
    name = "Cheap"
class Nameless:
    def score(self, state, pod, node):
        return 0
class Idle:
    name = "Idle"
class Usurper(Gate):
    name = "NodeName"
class Wanting(Gate):
    name = "Wanting"
    def __init__(self, client):
        pass
class Typo(Gate):
    name = "Typo"
    def preFilter(self, state, pod):
        pass
class OnlyTypo:
    name = "OnlyTypo"
    def preFilter(self, state, pod):
        pass
class Exploding(Gate):
    name = "Exploding"
    def __init__(self):
        raise ZeroDivisionError("division by zero")
class Outer:
    class Inner(Gate):
        name = "Inner"
nothing = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a module `policies`; imported modules are removed afterwards."""
    (tmp_path / "policies.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in [name for name in sys.modules if name not in known]:
        del sys.modules[name]


def install(folder, package, *entries):
    """Install a package `package` with the entry points `entries` (NAME = MODULE:CLASS)."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[fairlead.plugins]", *entries]))
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def config(folder, text):
    path = folder / "scheduler.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    path.write_text(f"{head}profiles:\n- {text}\n")
    return str(path)


def names(scheduler, profile=0):
    """Return the users' plugins of a profile with their weights."""
    default = dict(DEFAULT_PLUGINS)
    return {n: w for n, w in scheduler.profiles[profile].plugins if n not in default}


# --- where they come from ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    ["policies:Cheap", "policies.py:Cheap", "./policies.py:Cheap", "policies:Cheap=7"],
)
def test_a_plugin_is_loaded_from_a_module_or_a_file(folder, source) -> None:
    [found] = UserPlugins([source]).named
    assert (found.name, found.weight) == ("Cheap", 7 if "=" in source else 1)


def test_a_nested_class_can_be_a_plugin(folder) -> None:
    assert UserPlugins(["policies:Outer.Inner"]).named[0].name == "Inner"


def test_a_file_is_imported_once_and_may_import_its_neighbours(folder) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "one.py").write_text("from two import Cheap as Base\nclass One(Base):\n"
                                           "    name = 'One'\n")  # fmt: skip
    (folder / "sub" / "two.py").write_text(SOURCE)
    one, two = UserPlugins(["sub/one.py:One", "sub/two.py:Cheap"]).named
    assert issubclass(one.plugin, two.plugin)


def test_two_files_with_equal_names_are_two_modules(folder) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "policies.py").write_text(SOURCE.replace('"Cheap"', '"Cheaper"'))
    found = UserPlugins(["policies.py:Cheap", "sub/policies.py:Cheap"]).named
    assert [one.name for one in found] == ["Cheap", "Cheaper"]


class Last:
    """A plugin in a test or in a notebook, which no option could name if it were local."""

    name = "Last"

    def score(self, state, pod, node):
        return 0


def test_a_script_gives_the_class_itself(tmp_path) -> None:
    config = read_scheduler_config(None, [Last])
    assert names(config) == {"Last": 1}
    with pytest.raises(InputError) as refusal:
        UserPlugins([int])
    assert str(refusal.value).startswith("--plugin: builtins:int: int has no name")
    with pytest.raises(InputError, match=r"plugins: takes a tuple such as \('policies:Cheap',\)"):
        read_scheduler_config(None, "policies:Cheap")


def test_installed_plugins_are_found_by_name(folder) -> None:
    install(folder, "policies-package", "Cheap = policies:Cheap")
    assert UserPlugins(["Cheap=3"]).named[0].weight == 3
    found = UserPlugins().find("Cheap")
    assert found is not None
    assert found.name == "Cheap"
    assert UserPlugins().find("Dear") is None


BROKEN_SOURCES = {
    "raises.py": "raise RuntimeError('at home')",
    "exits.py": "raise SystemExit(3)",
    "stops.py": "raise GeneratorExit",
    "garbled.py": "x = (",
    "lost.py": "import nowhere_to_be_found",
}


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("nofile.py:Cheap", "there is no such file"),
        ("no_module:Cheap", "there is no module no_module"),
        ("no_package.sub:Cheap", "there is no module no_package"),
        ("policies:", "must be MODULE:CLASS or FILE.py:CLASS"),
        (":Cheap", "must be MODULE:CLASS or FILE.py:CLASS"),
        ("policies.py", "must be MODULE:CLASS or FILE.py:CLASS"),
        ("policies:Chaep", "has no Chaep; did you mean Cheap?"),
        ("policies:nothing", "nothing is not a class"),
        ("policies:Nameless", "Nameless has no name: it needs a string attribute `name`"),
        ("policies:Idle", "Idle has no extension point: it has none of the methods pre_enqueue,"),
        ("policies:Usurper", "has the name NodeName, which is a built-in plugin"),
        (
            "policies:Wanting",
            "Wanting: its constructor requires 'client'; it gets only handle and args",
        ),
        ("policies:Cheap=0", "the weight '0' is not a number from 1 to 100000"),
        ("policies:Cheap=-1", "the weight '-1' is not a number from 1 to 100000"),
        ("policies:Cheap=much", "the weight 'much' is not a number from 1 to 100000"),
        ("policies:Gate=2", "Gate has no score method, so it cannot have a weight"),
        ("raises.py:X", "cannot be imported: RuntimeError: at home"),
        ("raises:X", "cannot be imported: RuntimeError: at home"),
        ("exits.py:X", "cannot be imported: it calls sys.exit"),
        ("stops.py:X", "cannot be imported: GeneratorExit"),
        ("garbled.py:X", "cannot be imported: line 1: '(' was never closed"),
        ("lost.py:X", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_to"),
        ("lost:X", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_to"),
        (
            "Unheard",
            "no plugin 'Unheard' is installed (none are installed); otherwise use MODULE:CLASS",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_refused_in_one_line(folder, option, problem) -> None:
    for name, text in BROKEN_SOURCES.items():
        (folder / name).write_text(text)
    with pytest.raises(InputError) as refusal:
        UserPlugins([option])
    assert str(refusal.value).startswith(f"--plugin: {option}: {problem}")


def test_two_plugins_with_one_name_are_refused(folder) -> None:
    with pytest.raises(InputError, match="policies:Twin: plugin 'Cheap' is given twice"):
        UserPlugins(["policies:Cheap", "policies:Twin"])


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("Chaep", "no plugin 'Chaep' is installed (did you mean Cheap? known: Broken, Cheap,"),
        ("Broken", "faulty-package: No module named 'gone'"),
        ("Double", "'Double' is registered by several packages: faulty-package, policies-package"),
        ("Seven", "policies:nothing is not a class"),
    ],
)
def test_invalid_installed_plugins_are_refused(folder, option, problem) -> None:
    install(folder, "policies-package", "Cheap = policies:Cheap", "Double = policies:Gate",
            "Seven = policies:nothing")  # fmt: skip
    install(folder, "faulty-package", "Broken = gone:X", "Double = policies:Sorter")
    with pytest.raises(InputError) as refusal:
        UserPlugins([option])
    assert str(refusal.value).startswith(f"--plugin: {option}: {problem}")


# --- where they stand --------------------------------------------------------------------------


def test_without_a_configuration_user_plugins_follow_the_default_plugins(folder) -> None:
    found = read_scheduler_config(None, UserPlugins(["policies:Gate", "policies:Cheap=4"]))
    assert names(found) == {"Gate": 1, "Cheap": 4}
    assert list(found.out_of_tree) == ["Gate", "Cheap"]


def test_every_profile_that_does_not_mention_a_user_plugin_enables_it(folder) -> None:
    path = config(folder, "schedulerName: a\n- schedulerName: b")
    found = read_scheduler_config(path, UserPlugins(["policies:Cheap"]))
    assert [names(found, 0), names(found, 1)] == [{"Cheap": 1}, {"Cheap": 1}]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ("{multiPoint: {enabled: [{name: Cheap}]}}", {"Cheap": 9}),
        ("{multiPoint: {enabled: [{name: Cheap, weight: 5}]}}", {"Cheap": 5}),
        ("{multiPoint: {disabled: [{name: Cheap}]}}", {}),
    ],
)
def test_a_configuration_that_names_a_user_plugin_has_precedence(folder, plugins, expected) -> None:
    path = config(folder, f"plugins: {plugins}")
    found = read_scheduler_config(path, UserPlugins(["policies:Cheap=9"]))
    assert names(found) == expected


def test_a_configuration_can_name_installed_plugins_without_an_option(folder) -> None:
    install(folder, "policies-package", "Cheap = policies:Cheap")
    path = config(folder, "plugins: {multiPoint: {enabled: [{name: Cheap}]}}")
    assert names(read_scheduler_config(path)) == {"Cheap": 1}


def test_a_user_queue_sort_plugin_replaces_the_default_one(folder) -> None:
    found = read_scheduler_config(None, UserPlugins(["policies:Sorter"]))
    assert "PrioritySort" not in dict(found.profiles[0].plugins)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pluginConfig: [{name: Cheap, args: {label: 3}}]", "args.label: expected str, got int"),
        ("pluginConfig: [{name: Cheap, args: {lable: a}}]", "args.lable: unknown; known: label"),
        ("pluginConfig: [{name: Gate, args: {a: 1}}]", "Gate: takes no arguments"),
    ],
)
def test_arguments_are_validated_against_the_parameters_of_the_plugin(
    folder, text, problem
) -> None:
    plugins = UserPlugins(["policies:Cheap", "policies:Gate"])
    with pytest.raises(InputError) as refusal:
        read_scheduler_config(config(folder, text), plugins)
    assert str(refusal.value).startswith(str(folder / "scheduler.yaml"))
    assert problem in str(refusal.value)


def test_arguments_reach_the_plugin(folder) -> None:
    text = "pluginConfig: [{name: Cheap, args: {label: cost}}]"
    found = read_scheduler_config(config(folder, text), UserPlugins(["policies:Cheap"]))
    assert found.profiles[0].args["Cheap"] == {"label": "cost"}


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("policies:Typo", "has preFilter, which is never called: it is spelled pre_filter"),
        ("policies:OnlyTypo", "has preFilter, which is never called: it is spelled pre_filter"),
        ("policies:Exploding", "cannot be made: ZeroDivisionError: division by zero"),
    ],
)
def test_a_class_that_cannot_be_instantiated_or_called_is_refused(folder, option, problem) -> None:
    with pytest.raises(InputError) as refusal:
        read_scheduler_config(None, UserPlugins([option]))
    assert problem in str(refusal.value)
    assert str(refusal.value).startswith("--plugin: ")
