"""minimal_admission: the admission plugins that set the pod fields which the scheduler reads."""

from __future__ import annotations

from fairlead.apiserver.admission.attributes import AdmissionPlugin
from fairlead.apiserver.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from fairlead.apiserver.admission.plugins.priority import Priority


def minimal_admission(
    *, preemption_policies: bool = True, group_priorities: bool = False
) -> tuple[AdmissionPlugin, ...]:
    """Return the plugins that every store runs, in the order in which it runs them.

    `preemption_policies` and `group_priorities` are options of the plugin Priority.
    """
    return (
        # before anything that looks at a pod's priority
        Priority(preemption_policies=preemption_policies, group_priorities=group_priorities),
        DefaultTolerationSeconds(),
    )
