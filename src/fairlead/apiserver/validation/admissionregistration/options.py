"""ValidationOptions: which rules about policies and webhook configurations apply.

upstream: pkg/apis/admissionregistration/validation/validation.go: validationOptions
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class ValidationOptions(Struct, frozen=True, kw_only=True):
    """The rules that an API server applies to new objects, but not to all stored ones.

    `compile_expressions` refuses CEL expressions that do not compile or have the wrong type.
    `require_no_side_effects` refuses webhooks with the side effects Some or Unknown.
    `require_recognized_review_version` refuses webhooks that accept no version of AdmissionReview
    that the API server knows. `require_unique_names` refuses webhooks with equal names.
    `allow_invalid_selector_values` allows the matchExpressions of a webhook's selectors to contain
    values that no label can have.
    """

    compile_expressions: bool = True
    require_no_side_effects: bool = True
    require_recognized_review_version: bool = True
    require_unique_names: bool = True
    allow_invalid_selector_values: bool = False


NEW: Final = ValidationOptions()
# v1beta1 had fewer rules for webhooks, and a later Kubernetes release may have more CEL functions.
STORED: Final = ValidationOptions(
    compile_expressions=False,
    require_no_side_effects=False,
    require_recognized_review_version=False,
    require_unique_names=False,
    allow_invalid_selector_values=True,
)
