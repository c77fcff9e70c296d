"""Validation: whether an object makes sense by itself.

Law: pure; every rule names the field it is about and yields all that is wrong, in the words of
the API server, about the object with its defaults. Nothing here looks at other objects: that is
admission's part.
"""

from fairlead.apiserver.validation.check import (
    validate_status,
    validated_new,
    validated_stored,
    validated_update,
)

__all__ = ["validate_status", "validated_new", "validated_stored", "validated_update"]
