"""Extender: the configuration of an extender. ExtenderCalls: builds the calls to an extender.

upstream: pkg/scheduler/apis/config/types.go: Extender; pkg/scheduler/extender.go: HTTPExtender
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Container
from fairlead.engine.core.command import CallExtender, ExtenderVerb, NodeVictims
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.core.reporter import ExtenderIgnored, Reporter, SilentReporter
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.state.pod_info import PodInfo

TIMEOUT_DEFAULT: Final = seconds(5)
SILENT: Final = SilentReporter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderTls:
    """TLS settings for an extender; certificates and keys are PEM, inline or in files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = field(default=b"", repr=False)
    ca_data: bytes = b""


class Extender(Struct, frozen=True, kw_only=True):
    """The configuration of one extender.

    The URL of a call consists of `url_prefix` and a verb. Calls with an empty verb are not made.
    """

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout: DurationNs = TIMEOUT_DEFAULT  # limits a whole call (ns)
    node_cache_capable: bool = False  # whether calls contain only node names instead of whole nodes
    # If set, the extender is called only for pods with a request or a limit for one of these
    # resources.
    managed_resources: tuple[str, ...] = ()
    ignorable: bool = False
    enable_https: bool = False
    tls: ExtenderTls | None = None

    def is_interested(self, pod: PodInfo) -> bool:
        """Return whether the extender is called for `pod`."""
        if not self.managed_resources:
            return True
        spec = pod.pod.spec
        return any(map(self._manages, (*spec.containers, *spec.init_containers)))

    def _manages(self, container: Container) -> bool:
        resources = {**container.resources.requests, **container.resources.limits}
        return any(name in resources for name in self.managed_resources)

    def address(self, verb: str) -> str:
        """Return the URL of a call with `verb`."""
        return f"{self.url_prefix.rstrip('/')}/{verb}"


class ExtenderCalls(Struct, frozen=True):
    """Builds the calls to one extender for one pod.

    `index` is the extender's index in the configuration. Failed calls that are ignored are reported
    to `reporter`.
    """

    index: int
    extender: Extender
    pod: PodInfo
    reporter: Reporter = SILENT

    def ignore(self, verb: str, cause: object) -> None:
        """Report that the call with `verb` failed because of `cause`, and that it is ignored."""
        self.reporter.report(ExtenderIgnored(self.extender.address(verb), str(cause)))

    def filter(self, nodes: Sequence[str]) -> CallExtender:
        """Return the filter call for `nodes`."""
        return self._about_nodes(ExtenderVerb.FILTER, self.extender.filter_verb, nodes)

    def prioritize(self, nodes: Sequence[str]) -> CallExtender:
        """Return the prioritize call for `nodes`."""
        return self._about_nodes(ExtenderVerb.PRIORITIZE, self.extender.prioritize_verb, nodes)

    def bind(self, node: str) -> CallExtender:
        """Return the bind call, with which the extender binds the pod to `node`."""
        return self._about_nodes(ExtenderVerb.BIND, self.extender.bind_verb, (node,))

    def preempt(self, candidates: Sequence[Candidate]) -> CallExtender:
        """Return the preempt call for `candidates` and their victims."""
        return CallExtender(
            extender=self.index,
            verb=ExtenderVerb.PREEMPT,
            url=self.extender.address(self.extender.preempt_verb),
            pod=self.pod.ref,
            victims=tuple(map(_victims, candidates)),
            by_name=self.extender.node_cache_capable,
        )

    def _about_nodes(self, verb: ExtenderVerb, name: str, nodes: Sequence[str]) -> CallExtender:
        return CallExtender(
            extender=self.index,
            verb=verb,
            url=self.extender.address(name),
            pod=self.pod.ref,
            nodes=tuple(nodes),
            by_name=self.extender.node_cache_capable,
        )


def _victims(candidate: Candidate) -> NodeVictims:
    pods = tuple(victim.ref for victim in candidate.victims)
    return NodeVictims(candidate.node.name, pods, candidate.pdb_violations)


def interested_extenders(
    extenders: Sequence[Extender], pod: PodInfo, reporter: Reporter = SILENT
) -> list[ExtenderCalls]:
    """Return the extenders to call for `pod`, in the order of the configuration."""
    return [
        ExtenderCalls(index, extender, pod, reporter)
        for index, extender in enumerate(extenders)
        if extender.is_interested(pod)
    ]
