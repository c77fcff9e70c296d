"""Validation: whether an object makes sense by itself.

Law: pure; every rule names the field it is about and yields all that is wrong, in the words of
the API server, about the object with its defaults. Nothing here looks at other objects: that is
admission's part.
"""

from fairlead.apiserver.validation.check import (
    defaulted,
    validate_new,
    validate_new_status,
    validate_part,
    validate_status,
    validate_update,
    validated_new,
    validated_stored,
)

__all__ = [
    "defaulted",
    "validate_new",
    "validate_new_status",
    "validate_part",
    "validate_status",
    "validate_update",
    "validated_new",
    "validated_stored",
]
