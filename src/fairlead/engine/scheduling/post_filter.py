"""Runs the PostFilter plugins if no node fits; extenders may filter the plugins' candidates.

upstream: framework/runtime/framework.go: RunPostFilterPlugins
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.status import SUCCESS, Code, Status, unschedulable
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import PostFilterResult, PreparationCommand
from fairlead.engine.framework.runtime import Framework, attempt
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.extender.extender import ExtenderCalls
from fairlead.engine.scheduling.extender.preempt import narrow_candidates
from fairlead.engine.state.pod_info import PodInfo


class PostFilterOutcome(Struct, frozen=True):
    """The combined result of the PostFilter plugins.

    If a plugin succeeded, `result` is its result, and `message` is "". If a plugin returned an
    ERROR, `result` is its result without the nomination. `message` is then the message of the
    ERROR. In all other cases, `message` joins the reasons of the plugins that ran. `result` is then
    the result of the last plugin that set or cleared the nomination; it is empty if there is no
    such plugin. `commands` are the commands of all plugins that ran.
    """

    status: Status
    message: str
    result: PostFilterResult
    commands: tuple[PreparationCommand, ...] = ()


def run_post_filters(
    framework: Framework,
    found: Feasibility,
    pod: PodInfo,
    diagnosis: Diagnosis,
    extenders: Sequence[ExtenderCalls] = (),
) -> Consultation[PostFilterOutcome]:
    """Run the PostFilter plugins in order, and join their reasons.

    Stops at the first plugin that returns Success, Error or UnschedulableAndUnresolvable.
    `extenders` narrow the candidates of a plugin that returns a shortlist.
    """
    found.state.write(found)
    reasons: list[str] = []
    commands: tuple[PreparationCommand, ...] = ()
    last = PostFilterResult(SUCCESS)
    for plugin in framework.post_filters:
        answer = attempt(plugin, partial(plugin.post_filter, found.state, pod, diagnosis))
        if isinstance(answer, Status):
            answer = PostFilterResult(answer)
        if answer.shortlist is not None:
            shortlist = answer.shortlist
            left = yield from narrow_candidates(extenders, shortlist.candidates, diagnosis.table)
            answer = shortlist.choose(left)
        commands += answer.commands
        status = answer.status.by(plugin.name)
        if status.is_success:
            return PostFilterOutcome(status, "", answer, commands)
        if status.code is Code.ERROR:
            left_alone = replace(answer, nominated_node=None)
            return PostFilterOutcome(status, status.message, left_alone, commands)
        reasons.extend(status.reasons)
        if answer.nominated_node is not None:
            last = answer
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            break
    message = ", ".join(reasons)
    return PostFilterOutcome(unschedulable(message), message, last, commands)
