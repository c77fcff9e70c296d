"""A scheduler configuration in a ConfigMap of the dump: named in a note, used on request only."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: other}]
"""


def config_map(name="scheduler", **data):
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.fixture
def ask(snapshot, make):
    def ask_what_if(*objects, config=None, plugin=()):
        pod = make.pod("p", schedulerName="other")
        cluster = snapshot(make.node("a"), pod, *objects)
        return what_if(cluster, ClusterChange(), Conditions(config=config, plugin=plugin))

    return ask_what_if


def test_a_stored_configuration_is_named_in_a_note_and_not_used(ask):
    answer = ask(config_map(config=CONFIG), config_map("other", text="x: 1", broken="{ KubeSched"))
    assert answer.changed.notes[0] == (
        "The dump has a KubeSchedulerConfiguration in configmap/kube-system/scheduler/config, "
        "which is not used: the run without the change has kube-scheduler's defaults. "
        "--config configmap/kube-system/scheduler/config uses it."
    )
    assert answer.scheduler_words == "default scheduler"
    assert not answer.changed.placed


@pytest.mark.parametrize("name", ["configmap/kube-system/scheduler", "cm/kube-system/scheduler/c"])
def test_a_stored_configuration_is_used_if_an_option_names_it(ask, name):
    answer = ask(config_map(c=CONFIG), config=name)
    assert [pod.key for pod in answer.changed.placed] == ["default/p"]
    assert answer.scheduler_words == f"scheduler {name}"
    assert not any("KubeSchedulerConfiguration" in note for note in answer.changed.notes)


def test_the_plugins_of_the_stored_configuration_are_named(ask):
    plugin = "examples/plugins/node_price.py:NodePrice"
    assert ask(plugin=(plugin,)).scheduler_words == f"default scheduler with {plugin}"


def test_a_name_that_matches_no_or_several_config_maps_is_refused(ask):
    with pytest.raises(InputError, match=r"scheduler; the dump has no ConfigMaps$"):
        ask(config="configmap/kube-system/scheduler")
    with pytest.raises(InputError, match="no ConfigMap of the dump has a KubeScheduler"):
        ask(config_map(c="a: b"), config="configmap/kube-system/scheduler")
    with pytest.raises(InputError, match="did you mean configmap/kube-system/scheduler/c"):
        ask(config_map(c=CONFIG), config="configmap/kube-system/schedular/c")
    with pytest.raises(InputError, match=r"several configurations; say which: .*/a, .*/b"):
        ask(config_map(a=CONFIG, b=CONFIG), config="configmap/kube-system/scheduler")
    broken = CONFIG.replace("schedulerName: other", "schedulername: x")
    with pytest.raises(InputError, match=r"ConfigMap kube-system/scheduler: c: profiles\[0\]"):
        ask(config_map(c=broken), config="configmap/kube-system/scheduler")


@pytest.mark.parametrize("name", ["configmap/kube-system/scheduler", "cm/kube-system/scheduler/c"])
def test_a_selected_text_that_is_not_yaml_is_named_with_its_line(ask, name):
    broken = config_map(a="x: [", c=CONFIG + "extenders: [")
    with pytest.raises(InputError, match=r"ConfigMap kube-system/scheduler: c: is not YAML: line"):
        ask(broken, config=name)
    with pytest.raises(InputError, match="no ConfigMap of the dump has a KubeScheduler"):
        ask(broken, config="configmap/kube-system/other")
