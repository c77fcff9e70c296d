"""Arguments of batch plugins that have no effect."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.batch.configuration_file import SHIPPED, read_configuration
from fairlead.engine.batch.extension import Extensions
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import DEFAULT_CONDITIONS
from fairlead.whatif.configuration.batch.argument_note import argument_notes
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.question import what_if

INVALID = "The argument {} of the batch plugin {} has its default value, because {!r} is not {}."
UNKNOWN = "The argument {} of the batch plugin {} has no effect here{}"


def notes_of(plugin, arguments, rules="kube-batch"):
    text = f"rules: {rules}\ntiers: [{{plugins: [{{name: {plugin}, arguments: {arguments}}}]}}]"
    return [*argument_notes(read_configuration(text))]


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("binpack", "{binpack.weight: 0, binpack.cpu: 5, binpack.memory: '3'}"),
        ("binpack", "{binpack.resources: 'nvidia.com/gpu, x', binpack.resources.x: 2}"),
        ("overcommit", "{overcommit-factor: 1.2, overcommit-factor.nvidia.com/gpu: 1}"),
        ("predicates", "{predicate.MemoryPressureEnable: true, predicate.PIDPressureEnable: F}"),
        ("nodeorder", "{leastrequested.weight: -1, podaffinity.weight: 2}"),
        ("gang", "{}"),
    ],
)
def test_a_valid_argument_has_no_note(plugin, arguments):
    assert notes_of(plugin, arguments) == []


@pytest.mark.parametrize(
    ("plugin", "key", "text", "expected"),
    [
        ("binpack", "binpack.weight", "abc", "an integer of at least 0"),
        ("binpack", "binpack.cpu", "-1", "an integer of at least 0"),
        ("binpack", "binpack.memory", "1_0", "an integer of at least 0"),
        ("overcommit", "overcommit-factor", "0.5", "a number of at least 1"),
        ("overcommit", "overcommit-factor.cpu", "nan", "a number of at least 1"),
        ("predicates", "predicate.DiskPressureEnable", "yes please", "true or false"),
        ("nodeorder", "nodeaffinity.weight", "1.5", "an integer"),
    ],
)
def test_an_invalid_value_is_noted(plugin, key, text, expected):
    found = notes_of(plugin, f"{{{key}: '{text}'}}")
    assert found == [INVALID.format(key, plugin, text, expected)]


@pytest.mark.parametrize(
    ("plugin", "key", "hint"),
    [
        ("binpack", "binpack.wieght", "; did you mean binpack.weight?"),
        (
            "predicates",
            "predicate.GPUSharingEnable",
            (
                "; known: predicate.DiskPressureEnable, predicate.MemoryPressureEnable, "
                "predicate.PIDPressureEnable."
            ),
        ),
        ("gang", "x", "; the plugin has no arguments here."),
    ],
)
def test_an_unknown_argument_is_noted(plugin, key, hint):
    assert notes_of(plugin, f"{{{key}: 1}}") == [UNKNOWN.format(key, plugin, hint)]


def test_the_weight_of_a_resource_that_binpack_resources_does_not_name_is_noted():
    [note] = notes_of("binpack", "{binpack.resources: y, binpack.resources.x: 1}")
    assert "binpack.resources.x of the batch plugin binpack has no effect here" in note


def test_fairleads_rules_have_weights_that_kube_batch_lacks():
    assert notes_of("nodeorder", "{imagelocality.weight: 1}", "fairlead") == []


def test_arguments_of_users_plugins_are_not_checked():
    config = read_configuration("tiers: [{plugins: [{name: gang, arguments: {x: 1}}]}]")
    own = replace(config, extensions=Extensions({"gang": lambda _context: object()}))
    assert [*argument_notes(own)] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_built_in_configurations_have_no_notes(name):
    assert [*argument_notes(read_configuration(SHIPPED[name]))] == []


@pytest.mark.parametrize("is_new", [False, True])
def test_an_answer_notes_the_arguments_of_the_configuration(snapshot, make, tmp_path, is_new):
    path = tmp_path / "volcano.yaml"
    path.write_text("tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: abc}}]}]")
    taken = snapshot([make.node("n0"), make.pod("p", schedulerName="volcano")])
    source = str(path)
    conditions, change = DEFAULT_CONDITIONS, ClusterChange(new_batch_config=source)
    if not is_new:
        conditions = replace(conditions, batch=BatchOptions(source))
        change = ClusterChange(cordon=("n0",))
    notes = what_if(taken, change, conditions).effect.changed.notes
    wanted = INVALID.format("binpack.weight", "binpack", "abc", "an integer of at least 0")
    assert wanted in notes
