"""Next steps for pods that a ResourceQuota refuses, now or later: a higher limit of the quota."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.api.quantity import Quantity, canonical
from fairlead.api.text.name_list import joined
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts_text, maximum
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.apiserver.kind import RESOURCE_QUOTA
from fairlead.whatif.next_steps.step_context import NAMES_MAX, TRIES_MAX, StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import ObjectError, RefusedWorkload, RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef


class _QuotaName(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Trial(NamedTuple):
    limits: Mapping[_QuotaName, Amounts]
    effect: Effect  # the effect of the user's change if the quotas have these limits


def raise_quotas(context: StepContext) -> Iterator[NextStep]:
    """Yield a step that raises the limits of the quotas that refuse the missing pods.

    The step is a command for the real cluster. But if the user's what-if applies one of the quotas,
    the step is the user's what-if with higher limits, because the user has to edit the file.

    Each limit is raised to the usage of its quota plus the requests of all pods that the quota
    refuses. Pods that the quota refuses even without the user's change count, too, because they may
    use up the higher limit first. The step is tried in a simulation. The reason of a refusal names
    only the limits that are exceeded. So other limits or other quotas may refuse the pods in the
    trial. In this case, the step raises these limits, too, and is tried again, up to TRIES_MAX
    times in all. The step is yielded only if no missing pod is refused in its trial.

    Nothing is yielded if --set of the user's change may already edit one of the quotas. Pods
    without a controller are left out: nothing creates them again after the command.
    """
    trial = _admit_missing_pods(context)
    if trial is not None:
        yield _raised(trial.limits, _refused_pods(context), trial.effect, context)


def _refused_pods(context: StepContext) -> list[ObjectError]:
    """Return the lasting errors of objects that lack pods because a quota refuses them."""
    return [one for one in context.answer.effect.lasting_errors if one.missing and _excess(one)]


def _admit_missing_pods(context: StepContext) -> _Trial | None:
    """Return the trial of the step of `raise_quotas`; None if there is no such step."""
    change, refused = context.answer.change, _refused_pods(context)
    limits: dict[_QuotaName, Amounts] = {}
    seen = context.answer.effect
    for _ in range(TRIES_MAX if refused else 0):
        higher = _sufficient_limits(seen.changed, {_quota(one) for one in _still(refused, seen)})
        for quota, amounts in higher.items():
            limits[quota] = maximum(limits.get(quota, {}), amounts)
        if not higher or any(is_named(str(quota), change.set) for quota in limits):
            return None
        tried = context.ask(replace(change, set=(*change.set, *_edits(limits))))
        if tried is None:
            return None
        if not _still(refused, tried):
            return _Trial(limits, tried) if len(limits) <= NAMES_MAX else None
        seen = tried
    return None


def raise_quotas_for_replacements(context: StepContext) -> Iterator[NextStep]:
    """Yield a step that raises the limits of the quotas that refuse replacements of existing pods.

    The step has one of the forms of `raise_quotas`. Each limit is first raised to the usage of its
    quota, which is enough if the replacements request the same amounts as the existing pods. If
    this is not enough, the limit is raised to the usage plus the requests of all replacements,
    because the pods may be replaced one after another. The step is tried in a simulation. If other
    limits or other quotas refuse the replacements in the trial, the step raises these limits, too,
    and is tried again, up to TRIES_MAX times in all. The step is yielded only if all these
    replacements are admitted in its trial.

    If `raise_quotas` yields a step, the limits of this step are raised further, because a lower
    limit would undo that step. Nothing is yielded if that step already admits the replacements.
    Nothing is yielded either if --set of the user's change may already edit one of the quotas.
    """
    effect, change = context.answer.effect, context.answer.change
    refused = {one.workload for one in effect.refused_replacements if QuotaExcess.read(one.message)}
    trial = _admit_missing_pods(context) if refused else None
    limits: dict[_QuotaName, Amounts] = {} if trial is None else dict(trial.limits)
    seen = effect if trial is None else trial.effect
    if not any(one.workload in refused for one in seen.refused_replacements):
        return
    for _ in range(TRIES_MAX):
        left = [one for one in seen.refused_replacements if one.workload in refused]
        if seen is not effect and not left:
            if len(limits) <= NAMES_MAX:
                words = f"admits the replacements of pods of {_workloads(refused)}"
                yield _step(limits, words, context)
            return
        for quota, amounts in _limits_for_replacements(left, seen.changed).items():
            limits[quota] = maximum(limits.get(quota, {}), amounts)
        if any(is_named(str(quota), change.set) for quota in limits):
            return
        tried = context.ask(replace(change, set=(*change.set, *_edits(limits))))
        if tried is None:
            return
        seen = tried


def _limits_for_replacements(
    refused: Iterable[RefusedWorkload], run: RunOutcome
) -> Mapping[_QuotaName, Amounts]:
    """Return the limits with which quotas would probably admit the replacements of `refused`."""
    used: dict[_QuotaName, Amounts] = {}
    more: dict[_QuotaName, Amounts] = {}
    for one in refused:
        excess = QuotaExcess.read(one.message)
        if excess is None:
            continue
        quota = _QuotaName(one.workload.namespace, excess.quota)
        used[quota] = maximum(used.get(quota, {}), excess.used)
        limited = excess.limited
        if any(amount.nano <= limited[name].nano for name, amount in excess.used.items()):
            # The existing pods do not exceed the quota, so each replacement requests more than the
            # pod that it replaces.
            workload = run.workloads.get(one.workload)
            count = 1 if workload is None else max(workload.wanted, 1)
            more[quota] = add(more.get(quota, {}), _times(excess.requested, count))
    return {quota: add(amounts, more.get(quota, {})) for quota, amounts in used.items()}


def _times(amounts: Amounts, count: int) -> Amounts:
    return {
        name: Quantity(nano=one.nano * count, format=one.format) for name, one in amounts.items()
    }


def _workloads(refused: Collection[WorkloadRef]) -> str:
    names = [str(one) for one in sorted(refused)]
    return names[0] if len(names) == 1 else f"{len(names):,} workloads"


def refusal_words(tried: Effect) -> str:
    """Return the end of a step's text if quotas refuse pods in its trial `tried`; "" if none does.

    Example: `; quota/shop/web refuses pods`.
    """
    names = {_quota(one) for one in tried.lasting_errors if one.missing}
    quotas = sorted(f"quota/{one}" for one in names if one is not None)
    if not quotas:
        return ""
    return f"; {joined(quotas)} {'refuses' if len(quotas) == 1 else 'refuse'} pods"


def _excess(error: ObjectError) -> QuotaExcess | None:
    return QuotaExcess.read(error.message)


def _quota(error: ObjectError) -> _QuotaName | None:
    """Return the quota that refuses the pods of `error`; None if `error` names no quota."""
    excess = _excess(error)
    namespace = error.subject.partition(" ")[2].partition("/")[0]
    return None if excess is None else _QuotaName(namespace, excess.quota)


def _still(refused: Iterable[ObjectError], effect: Effect) -> list[ObjectError]:
    """Return those lasting errors of `effect` whose object also has an error in `refused`.

    Lasting errors of objects that lack no pods are left out.
    """
    subjects = {one.subject for one in refused}
    return [one for one in effect.lasting_errors if one.subject in subjects and one.missing]


def _sufficient_limits(
    run: RunOutcome, quotas: set[_QuotaName | None]
) -> Mapping[_QuotaName, Amounts]:
    """Return the limits with which `quotas` admit all pods that they refuse in `run`."""
    used: dict[_QuotaName, Amounts] = {}
    requested: dict[_QuotaName, Amounts] = {}
    for error in run.errors:
        excess, quota = _excess(error), _quota(error)
        if excess is not None and quota is not None and quota in quotas and error.missing:
            more = _times(excess.requested, error.missing)
            requested[quota] = add(requested.get(quota, {}), more)
            used[quota] = maximum(used.get(quota, {}), excess.used)
    return {quota: add(used[quota], more) for quota, more in requested.items()}


def _edits(limits: Mapping[_QuotaName, Amounts]) -> Iterator[str]:
    """Yield edits, values of --set, that set `limits`."""
    for quota, amounts in limits.items():
        for name, amount in amounts.items():
            path = f"spec.hard[{name}]"
            yield f"{RESOURCE_QUOTA.resource}/{quota}:{path}={canonical(amount)}"


def _raised(
    limits: Mapping[_QuotaName, Amounts],
    refused: Iterable[ObjectError],
    tried: Effect,
    context: StepContext,
) -> NextStep:
    """Return the step that raises quotas to `limits`, so that they admit the pods of `refused`.

    `tried` is the effect of the what-if's change if the quotas have these limits.
    """
    count = sum(one.missing for one in refused)
    pods = "the missing pod" if count == 1 else f"the {count:,} missing pods"
    effect = context.answer.effect
    pending = len(tried.difference.pending) - len(effect.difference.pending)
    rest = ""
    if pending > 0:
        verb = "waits" if pending == 1 else "wait"
        rest = f"; {pending:,} more {'pod' if pending == 1 else 'pods'} then {verb} for a node"
    return _step(limits, f"admits {pods}{rest}", context)


def _step(limits: Mapping[_QuotaName, Amounts], effect: str, context: StepContext) -> NextStep:
    """Return the step that raises quotas to `limits`.

    `effect` says what a higher quota does, such as `admits the missing pod`.
    """
    quotas = " and ".join(
        f"quota {quota} to {amounts_text(one, one).replace(',', ', ')}"
        for quota, one in sorted(limits.items())
    )
    if len(limits) > 1:
        effect = effect.replace("admits", "admit", 1)
    if applied := [str(quota) for quota in sorted(limits) if _is_applied(quota, context)]:
        return NextStep(
            f"ask again, and raise {quotas}, which {effect}; the applied file of "
            f"{joined(applied)} needs these limits",
            shlex.join(word for edit in _edits(limits) for word in ("--set", edit)),
        )
    commands = (
        shlex.join(
            ("kubectl", "patch", "resourcequota", "-n", quota.namespace, quota.name, "-p", patch)
        )
        for quota, one in sorted(limits.items())
        for patch in [_patch(one)]
    )
    return NextStep(f"raise {quotas}, which {effect}", command=" && ".join(commands))


def _is_applied(quota: _QuotaName, context: StepContext) -> bool:
    """Return whether the user's what-if applies `quota`, which --set does not edit."""
    return any(
        (one.kind, one.namespace, one.name) == (RESOURCE_QUOTA.kind, *quota)
        for one in context.written
    )


def _patch(hard: Amounts) -> str:
    texts = {name: canonical(hard[name]) for name in sorted(hard)}
    return json.dumps({"spec": {"hard": texts}}, separators=(",", ":"))
