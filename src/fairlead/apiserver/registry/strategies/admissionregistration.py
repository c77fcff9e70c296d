"""The strategies of admissionregistration.k8s.io.

upstream: pkg/registry/admissionregistration/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.validation.admissionregistration import policy, webhook
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

_GROUP: Final = "admissionregistration.k8s.io"


def _configuration(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(allow_unconditional_update=False, rules=_rules(check))


def _rules(check: Callable[[Json], Causes]) -> KindRules:
    return KindRules(
        name=dns_subdomain_problems,
        accepts_any_finalizer=True,
        metadata_comparisons=1,
        new=json_check(check),
    )


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    f"mutatingwebhookconfigurations.{_GROUP}": _configuration(webhook.check_webhooks),
    f"validatingwebhookconfigurations.{_GROUP}": _configuration(webhook.check_webhooks),
    f"mutatingadmissionpolicies.{_GROUP}": _configuration(policy.check_mutating_policy),
    f"mutatingadmissionpolicybindings.{_GROUP}": _configuration(policy.check_mutating_binding),
    f"validatingadmissionpolicies.{_GROUP}": ResourceStrategy(
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=_rules(policy.check_policy),
        reset_fields={"status": (("metadata",),)},
    ),
    f"validatingadmissionpolicybindings.{_GROUP}": _configuration(policy.check_validating_binding),
}
