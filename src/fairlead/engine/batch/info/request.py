"""TaskRequest: the resources that a task uses, and the resources that must be free to start it.

One of two rules computes these resources. Kubernetes' rule counts effective requests, as the
kubelet does. kube-batch's rule sums the requests of the containers and ignores overhead.
kube-batch's rule counts init containers in the resources that must be free to start the task, but
not in the resources that the task uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Container, Pod
from fairlead.api.pods.requests import DEFAULT_MEMORY_BYTES, DEFAULT_MILLI_CPU
from fairlead.api.quantity import milli_value, whole_value
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY, PODS, ResourceColumns
from fairlead.engine.state.shape import Amounts, Shape


class Slack(Struct, frozen=True):
    """The tolerance for comparing amounts: a request `a` fits into `b` if `a < b + tolerance`.

    An amount below the tolerance counts as zero. `cpu_milli` and `memory_bytes` are the tolerances
    of cpu and memory. For other resources the tolerance is 1.
    """

    cpu_milli: int = 1
    memory_bytes: int = 1

    def least(self, column: int) -> int:
        """Return the tolerance for amounts of the resource in `column`.

        It is also the least amount that does not count as zero.
        """
        if column == CPU:
            return self.cpu_milli
        return self.memory_bytes if column == MEMORY else 1

    def margin(self, column: int) -> int:
        """Return the amount that kube-batch adds to a request when it lists the lacking resources.

        The resource in `column` counts as lacking if its free amount is less than the request plus
        the result. The result is 0 if amounts are compared exactly (`NO_SLACK`).
        upstream: resource_info.go: FitDelta
        """
        return 0 if self == NO_SLACK else self.least(column)

    def least_part(self, column: int) -> float:
        """Return the tolerance for comparing the deserved amount of a queue with another amount.

        `column` is the column of the resource. cpu and memory have their usual tolerance. Other
        resources have the tolerance 0.01 instead of 1, because deserved amounts can be fractions.
        """
        return self.least(column) if column in (CPU, MEMORY) else _LEAST_PART


# resources that kube-batch does not support (resource_info.go: NewResource)
_NOT_COUNTED: Final = (PODS, "ephemeral-storage")
_KNOWN_MAX: Final = 1 << 14
_MIB: Final = 1024 * 1024
_LEAST_PART: Final = 0.01  # resource_info.go: minMilliScalarResources, in units


class TaskRequest:
    """The resources that a task uses (`running`), and those that it needs to start (`starting`).

    `running` and `starting` consist of pairs (column, amount). cpu is in millicores. `floors` are
    pairs of a column and the smallest free amount that a node needs to start the task.
    `is_best_effort` is set if all amounts in `starting` are zero. `runs_on_nothing` is set if all
    amounts in `running` are zero. `nonzero` is (millicores, memory bytes), with upstream's defaults
    for missing requests.

    `NodeInfo` keeps sums of the requests of all pods on a node. The amounts that these sums count
    for the task's pod may differ from `running` and `nonzero`. `surplus` contains the counted
    amounts minus `running`. `nonzero_surplus` contains the counted cpu and memory, with defaults,
    minus `nonzero`. For nearly all pods, `surplus` is empty and `nonzero_surplus` is (0, 0).
    """

    __slots__ = (
        "floors",
        "is_best_effort",
        "nonzero",
        "nonzero_surplus",
        "runs_on_nothing",
        "running",
        "starting",
        "surplus",
    )

    def __init__(
        self,
        running: Amounts,
        starting: Amounts,
        slack: Slack,
        shape: Shape,
        nonzero: tuple[int, int],
    ) -> None:
        """Store the request of the pods that have the spec `shape`.

        `nonzero` is (millicores, memory bytes), with upstream's defaults for missing requests.
        """
        self.running = running
        self.starting = starting
        self.floors = tuple((c, amount - slack.least(c) + 1) for c, amount in starting)
        self.runs_on_nothing = _is_nothing(running, slack)
        self.is_best_effort = _is_nothing(starting, slack)
        self.surplus: Amounts = _difference(shape.load, running)
        self.nonzero = nonzero
        cpu, memory = shape.nonzero_load
        self.nonzero_surplus = (cpu - nonzero[0], memory - nonzero[1])

    @property
    def has_surplus(self) -> bool:
        """Whether `surplus` or `nonzero_surplus` contains an amount other than 0."""
        return bool(self.surplus) or self.nonzero_surplus != (0, 0)


def _difference(more: Amounts, less: Amounts) -> Amounts:
    counted = dict(less)
    by_column = ((column, amount - counted.get(column, 0)) for column, amount in more)
    return tuple((column, rest) for column, rest in by_column if rest)


def _is_nothing(amounts: Amounts, slack: Slack) -> bool:
    return all(amount < slack.least(column) for column, amount in amounts)


RequestRule = Callable[[PodInfo, ResourceColumns, Slack], TaskRequest]


def effective_requests(pod: PodInfo, _columns: ResourceColumns, slack: Slack) -> TaskRequest:
    """Return the request of `pod` as the Kubernetes scheduler computes it.

    The request includes init containers, sidecars and overhead, and reflects in-place resizes.
    """
    shape = pod.shape
    running = tuple((column, amount) for column, amount in shape.load if amount)
    return TaskRequest(running, shape.wanted, slack, shape, shape.nonzero_load)


def container_requests(pod: PodInfo, columns: ResourceColumns, slack: Slack) -> TaskRequest:
    """Return the request of `pod` as kube-batch computes it.

    upstream: pod_info.go: GetPodResourceRequest
    """
    spec = pod.shape.spec
    running = _sum(_requests(c) for c in spec.containers)
    starting = dict(running)
    for container in spec.init_containers:
        for name, amount in _requests(container).items():
            starting[name] = max(starting.get(name, 0), amount)
    # cpu and memory are compared even if neither is requested
    always = {"cpu": 0, "memory": 0}
    return TaskRequest(
        columns.amounts(running),
        columns.amounts(always | starting),
        slack,
        pod.shape,
        _with_defaults(pod.pod),
    )


def _requests(container: Container) -> dict[str, int]:
    return {
        name: milli_value(text) if name == "cpu" else whole_value(text)
        for name, text in container.resources.requests.items()
        if name not in _NOT_COUNTED
    }


def _sum(requests: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in requests:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return total


def _with_defaults(pod: Pod) -> tuple[int, int]:
    """Return the requests of `pod` as (millicores, memory bytes).

    A container without a request gets the default of Kubernetes 1.16's scorers (non_zero.go).
    """
    requests = [_requests(container) for container in pod.spec.containers]
    return (
        sum(one.get("cpu", DEFAULT_MILLI_CPU) for one in requests),
        sum(one.get("memory", DEFAULT_MEMORY_BYTES) for one in requests),
    )


class RequestTable:
    """Computes the requests of pods by one rule, and caches them by pod spec (`Shape`)."""

    def __init__(self, rule: RequestRule, slack: Slack, columns: ResourceColumns) -> None:
        """Start without requests; `columns` is the cluster's list of resources."""
        self._rule = rule
        self._slack = slack
        self._columns = columns
        self._known: dict[int, TaskRequest] = {}

    def of(self, pod: PodInfo) -> TaskRequest:
        """Return the request of `pod` from the cache, or compute it by the table's rule."""
        found = self._known.get(pod.shape.id)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:  # else it would keep growing as shapes come and go
                self._known.clear()
            found = self._rule(pod, self._columns, self._slack)
            self._known[pod.shape.id] = found
        return found


def amount_of(amounts: Amounts, column: int) -> int:
    """Return the amount in `column`, or 0 if `amounts` has no entry for this column."""
    return next((amount for c, amount in amounts if c == column), 0)


NO_SLACK: Final = Slack()
# upstream: pkg/scheduler/api/resource_info.go: minMilliCPU, minMemory
KUBE_BATCH_SLACK: Final = Slack(cpu_milli=10, memory_bytes=10 * _MIB)
