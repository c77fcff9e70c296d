"""The document at `/version`.

upstream: apimachinery/pkg/version/types.go:Info
"""

from __future__ import annotations

from typing import Final

MAJOR: Final = "1"
MINOR: Final = "36"
_PATCH: Final = "2"
_OLDEST_COMPATIBLE_MINOR: Final = "35"
_NO_BUILD: Final = "1970-01-01T00:00:00Z"


def version_info(fairlead_version: str) -> dict[str, str]:
    """Return the document at `/version`, with the Kubernetes version that the server emulates.

    The build metadata of `gitVersion` contains `fairlead_version`.
    """
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": _OLDEST_COMPATIBLE_MINOR,
        "gitVersion": f"v{MAJOR}.{MINOR}.{_PATCH}+fairlead-{fairlead_version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": _NO_BUILD,
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
