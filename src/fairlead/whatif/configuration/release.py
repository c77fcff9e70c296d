"""Reads the Kubernetes version that a run follows, from options and scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.feature_gate import (
    FEATURE_GATES,
    check_required_gates,
    parse_gates,
)
from fairlead.engine.configuration.release import CURRENT, NEWEST, Release, release_of
from fairlead.whatif.input.error import InputError


class ReleaseChoice(Struct, frozen=True):
    """The Kubernetes version ("" for none) and feature gates that a file or the command line sets.

    Three fields are for error messages. `source` is the file ("" for the command line).
    `of_version` and `of_gates` are the names of the options or fields.
    """

    version: str = ""
    gates: str | Mapping[str, bool] = ""
    source: str = ""
    of_version: str = "--behave-like"
    of_gates: str = "--feature-gates"

    def parsed(self) -> dict[str, bool]:
        """Return {name of a feature gate: whether it is enabled}. Raises InputError."""
        if not isinstance(self.gates, str):
            return dict(self.gates)
        try:
            return parse_gates(self.of_gates, self.gates)
        except ConfigurationError as cause:
            raise refusal(self.source, cause.field, cause.problem) from None


NO_CHOICE: Final = ReleaseChoice()


class Releases(Struct, frozen=True):
    """The releases to simulate: `nodes` for node controllers and kubelets, `general` for others."""

    general: Release = field(default_factory=lambda: CURRENT)
    nodes: Release = field(default_factory=lambda: CURRENT)

    def with_gates(self, gates: Mapping[str, bool]) -> Releases:
        """Return a copy in which `general` also sets `gates`, except gates that it already sets."""
        return replace(self, general=replace(self.general, gates={**gates, **self.general.gates}))

    @property
    def parts(self) -> dict[str, str]:
        """The Kubernetes version that each part of the simulation follows, by name of the part."""
        return {**self.general.parts, "node controllers": self.nodes.node_lifecycle.version}

    @property
    def gates(self) -> dict[str, bool]:
        """The feature gates that the user set."""
        return {**self.general.gates, **self.nodes.gates}

    @property
    def words(self) -> str:
        """One line that names the gates, and the version of every part; "" for the defaults.

        If all parts follow the newest version, the parts are not named.
        """
        if self == CURRENT_RELEASES:
            return ""
        parts = ", ".join(f"{part} {version}" for part, version in self.parts.items())
        is_newest = set(self.parts.values()) == {NEWEST}
        rest = "" if is_newest else f": {parts}; all else {NEWEST}"
        line = f"Behaves like Kubernetes {self.general.version}{rest}."
        gates = ", ".join(f"{name}={str(on).lower()}" for name, on in self.gates.items())
        return f"{line} Feature gates: {gates}." if gates else line

    def as_json(self) -> Json:
        """Return the field `behaves_like` of a JSON result: the versions and the feature gates.

        Returns {} if all versions and gates have their defaults.
        """
        if self == CURRENT_RELEASES:
            return {}
        parts = {part.replace(" ", "_"): version for part, version in self.parts.items()}
        version = {"version": self.general.version, **parts, "feature_gates": self.gates}
        return {"behaves_like": version}


CURRENT_RELEASES: Final = Releases()


def read_releases(general: ReleaseChoice, nodes: ReleaseChoice, option: ReleaseChoice) -> Releases:
    """Return the releases for the node controllers and for all other components.

    `nodes` overrides `general` for the node controllers, and `option` overrides both. The two
    releases can have different versions. A gate that only one of the versions has is ignored for
    the other version. Raises InputError, also for a gate that no version has.
    """
    for_all = _last(general, option)
    if not (nodes.version or nodes.gates):
        release = _release(for_all, general, option)
        return Releases(release, release)
    for_nodes = _last(general, nodes, option)
    return Releases(
        _release(for_all, general, option, other=for_nodes),
        _release(for_nodes, general, nodes, option, other=for_all),
    )


def read_release(choice: ReleaseChoice) -> Release:
    """Return the Kubernetes version and feature gates that `choice` names. Raises InputError."""
    return _release(choice, choice)


def _last(*choices: ReleaseChoice) -> ReleaseChoice:
    """Return the last of `choices` that has a version, otherwise the first choice."""
    return next((choice for choice in reversed(choices) if choice.version), choices[0])


def _release(
    chosen: ReleaseChoice, *choices: ReleaseChoice, other: ReleaseChoice | None = None
) -> Release:
    """Return the release of the version that `chosen` names, with the gates of all `choices`.

    The last choice that sets a gate applies. A gate that this version lacks is ignored if the
    version that `other` names has it. Raises InputError.
    """
    try:
        release = release_of(chosen.version)
    except ConfigurationError as cause:
        raise refusal(chosen.source, chosen.of_version, cause.problem) from None
    gates: dict[str, bool] = {}
    elsewhere = FEATURE_GATES.get(other.version or CURRENT.version, {}) if other else {}
    for choice in choices:
        known = FEATURE_GATES[release.version]
        given = choice.parsed().items()
        own = {name: value for name, value in given if name in known or name not in elsewhere}
        gates |= own
        try:
            release_of(release.version, own)
        except ConfigurationError as cause:
            raise refusal(
                choice.source, choice.of_gates, f"{cause.field}: {cause.problem}"
            ) from None
    try:
        check_required_gates(release.version, gates, chosen.of_gates)
    except ConfigurationError as cause:
        raise refusal(chosen.source, cause.field, cause.problem) from None
    return release_of(release.version, gates)


def refusal(source: str, name: str, problem: str) -> InputError:
    """Return an InputError about the field `name` of the file `source`, or the option `name`."""
    return InputError(source, problem, field=name) if source else InputError(name, problem)
