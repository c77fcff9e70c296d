"""Notes of a plan: rules that were not applied, and values added to the snapshot."""

from __future__ import annotations

from fairlead.apiserver.kind import DEVICE_TAINT_RULE
from fairlead.whatif.configuration.other_scheduler import rules_note
from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_release
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.snapshot.dump_note import IGNORED_RULES, dump_notes
from fairlead.whatif.snapshot.live_resource import unreadable_lines
from fairlead.whatif.snapshot.snapshot import Snapshot


def plan_notes(snapshot: Snapshot, model: ClusterModel, choice: ReleaseChoice) -> tuple[str, ...]:
    """Return the notes about a plan for `snapshot`, each a sentence."""
    release = read_release(choice)
    words = Releases(release, release).with_gates(model.gates).words
    rules = any(one.kind is DEVICE_TAINT_RULE for one in snapshot.manifests)
    # Pods without a scheduler wait, so they follow no rules.
    missing = (pod for pod in model.pods() if not model.has_profile(pod))
    unprofiled = {pod.pod.spec.scheduler_name: pod for pod in missing}
    others = [name for name, pod in unprofiled.items() if not model.missing_scheduler(pod)]
    return (
        *([words] if words else []),
        *unreadable_lines(snapshot.unreadable),
        *dump_notes(snapshot),
        *([IGNORED_RULES] if rules and not release.scheduler.device_taint_rules else []),
        *(["Extenders are not called, so their rules are missing here."]
          if model.has_extenders else []),
        *([rules_note(sorted(others))] if others else []),
    )  # fmt: skip
