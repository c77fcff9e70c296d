"""The plugins of a simulation are those of a server, in a server's order."""

from __future__ import annotations

from fairlead.api.codec import decode
from fairlead.api.pods.replicas import LoadedObjects, Replicas
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.observed_mutation import ObservedMutations
from fairlead.apiserver.admission.simulation import NOT_SIMULATED, SimulatedAdmission
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.deferred_storage import DeferredStorage

WEBHOOKS = "webhooks are counted instead of called"
INSTEAD = {
    "ValidatingAdmissionWebhook": WEBHOOKS,
    "MutatingAdmissionWebhook": "ObservedMutations",
}


def names_of(plugin):
    """Names of the plugins that `plugin` runs: it may be a plugin, or wrap others."""
    if hasattr(plugin, "plugins"):
        return [name for one in plugin.plugins for name in names_of(one)]
    if hasattr(plugin, "load"):
        return names_of(plugin.load())
    if hasattr(plugin, "otherwise"):
        return names_of(plugin.plugin)
    if hasattr(plugin, "unchecked"):
        return [WEBHOOKS]
    return [type(plugin).__name__]


def served(*, checks_only):
    return [
        INSTEAD.get(name, name)
        for one in served_admission(str)
        if getattr(one, "CHECKS_ONLY", False) is checks_only
        and (name := type(one).__name__) not in NOT_SIMULATED
    ]


def simulated(*, checks_only):
    plugins = SimulatedAdmission(str, lambda _, obj: obj).plugins
    groups = [one for one in plugins if getattr(one, "CHECKS_ONLY", False) is checks_only]
    return [name for one in groups for name in names_of(one)]


def test_a_simulation_has_the_mutating_plugins_of_a_server():
    """A new plugin of a server is simulated too, or has a reason in NOT_SIMULATED."""
    assert simulated(checks_only=False) == served(checks_only=False)


def test_a_simulation_has_the_validating_plugins_of_a_server():
    """They run after all mutating plugins; ResourceQuota is the last."""
    assert simulated(checks_only=True) == served(checks_only=True)


def test_containers_without_names_are_compared_with_each_other():
    """A hand-written pod or template may leave out the names of its containers."""
    template = {"spec": {"containers": [{"image": "i"}]}}
    owner = {"kind": "Job", "name": "j", "uid": "j", "controller": True}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
    meta = {"name": "p", "namespace": "n", "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    observed = ObservedMutations()
    more = {"image": "i", "resources": {"requests": {"cpu": "1"}}}
    observed.observe(
        LoadedObjects(
            [decode(job | {"metadata": {"name": "j", "namespace": "n", "uid": "j"}})],
            [Replicas((decode(pod | {"spec": {"containers": [more]}}),))],
        )
    )
    new = pod | template
    attributes = AdmissionAttributes(Operation.CREATE, POD, new)
    assert observed.admit(attributes, DeferredStorage())["spec"] == {"containers": [more]}


def test_plugins_that_are_not_simulated_exist():
    """A removed or renamed plugin leaves no reason behind."""
    assert set(NOT_SIMULATED) <= {type(one).__name__ for one in served_admission(str)}
