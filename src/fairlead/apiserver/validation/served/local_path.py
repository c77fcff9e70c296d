"""Paths within a volume, a directory or a host: they lead downwards.

upstream: pkg/apis/core/validation/validation.go:validateLocalDescendingPath
"""

from __future__ import annotations

from fairlead.apiserver.validation.field import Causes, invalid


def check_backsteps(field: str, path: str) -> Causes:
    """A path does not lead upwards."""
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def check_local_path(field: str, path: str) -> Causes:
    """A path leads downwards from where it stands."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    yield from check_backsteps(field, path)
