"""Configurations of schedulers in the ConfigMaps of a dump.

A dump does not show which scheduler reads a ConfigMap. So a KubeSchedulerConfiguration in a
ConfigMap is used only with `--config configmap/NAMESPACE/NAME` (or `.../NAME/KEY`). A configuration
of kube-batch or Volcano is used only with `--batch-config`. If these options are not set, a note
names the ConfigMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.apiserver.kind import CONFIG_MAP
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

KIND: Final = "KubeSchedulerConfiguration"
PREFIXES: Final = ("configmap/", "configmaps/", "cm/")


class ConfigurationKind(Struct, frozen=True):
    """A kind of configuration; `name` is its name in messages.

    Every configuration of this kind contains the text `marker`. Texts without `marker` are not
    parsed. `includes` returns whether an object is a configuration of this kind.
    """

    name: str
    marker: str
    includes: Callable[[Mapping[str, Any]], bool]


SCHEDULER: Final = ConfigurationKind(KIND, KIND, lambda value: value.get("kind") == KIND)
BATCH: Final = ConfigurationKind(
    "batch configuration", "tiers", lambda value: value.keys() >= {"actions", "tiers"}
)


class StoredConfiguration(Struct, frozen=True):
    """A configuration in the data of the ConfigMap `name` (NAMESPACE/NAME), at `key`."""

    name: str
    key: str
    document: Document

    @property
    def title(self) -> str:
        """The value of --config or --batch-config that selects this configuration."""
        return f"configmap/{self.name}/{self.key}"


def stored_configurations(
    manifests: Iterable[Manifest], kind: ConfigurationKind = SCHEDULER
) -> list[StoredConfiguration]:
    """Return the configurations of `kind` in the ConfigMaps among `manifests`, in their order."""
    return [
        found
        for manifest in samples(manifests)
        if manifest.kind is CONFIG_MAP
        for found in _of_config_map(manifest, kind)
    ]


def chosen_configuration(
    option: str,
    text: str,
    manifests: Iterable[Manifest],
    kind: ConfigurationKind = SCHEDULER,
) -> str | Document:
    """Return the configuration of `kind` that `text` (`configmap/NS/NAME[/KEY]`) selects.

    If `text` does not start with one of PREFIXES, it names a file and is returned unchanged. Raises
    InputError if the ConfigMap does not exist, or if `text` does not select exactly one
    configuration. The message names `option`.
    """
    if not text.startswith(PREFIXES):
        return text
    wanted = text.partition("/")[2]
    manifests = samples(manifests)
    known = stored_configurations(manifests, kind)
    found = [one for one in known if wanted in (one.name, f"{one.name}/{one.key}")]
    if len(found) == 1:
        return found[0].document
    if found:
        keys = ", ".join(one.title for one in found)
        raise InputError(option, f"{text} has several configurations; say which: {keys}")
    _refuse_broken_texts(wanted, manifests, kind)
    names = [one.title for one in known]
    hint = known_names(text, names) if names else f"no ConfigMap of the dump has a {kind.name}"
    if not any(one.kind is CONFIG_MAP for one in manifests):
        hint = "the dump has no ConfigMaps"
    raise InputError(option, f"there is no {kind.name} in {text}; {hint}")


def configuration_note(manifests: Iterable[Manifest], config: str) -> Iterator[str]:
    """Yield a note if `config` is "" and a ConfigMap of the dump has a scheduler configuration."""
    found = [one.title for one in stored_configurations(manifests)]
    if found and not config:
        yield (
            f"The dump has a {KIND} in {' and '.join(found)}, which is not used: the run without "
            f"the change has kube-scheduler's defaults. --config {found[0]} uses it."
        )


def _of_config_map(manifest: Manifest, kind: ConfigurationKind) -> Iterator[StoredConfiguration]:
    for key, text in _texts(manifest, kind):
        try:
            documents = _documents(manifest, key, text)
        except InputError:  # for example, a template of a configuration
            continue
        for value in documents:
            if isinstance(value, dict) and kind.includes(value):
                document = Document(_source(manifest, key), value)
                yield StoredConfiguration(manifest.ref.key, key, document)


def _refuse_broken_texts(
    wanted: str, manifests: Iterable[Manifest], kind: ConfigurationKind
) -> None:
    """Raise InputError if `wanted` (NS/NAME[/KEY]) selects a text that is not YAML."""
    for manifest in manifests:
        if manifest.kind is CONFIG_MAP:
            for key, text in _texts(manifest, kind):
                if wanted in (manifest.ref.key, f"{manifest.ref.key}/{key}"):
                    _documents(manifest, key, text)


def _texts(manifest: Manifest, kind: ConfigurationKind) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of each text in the ConfigMap that may be a configuration."""
    data = manifest.value.get("data")
    for key, text in data.items() if isinstance(data, dict) else ():
        if isinstance(text, str) and kind.marker in text:
            yield key, text


def _documents(manifest: Manifest, key: str, text: str) -> list[Any]:
    """Return the YAML documents in the `text` of a ConfigMap's `key`. Raises InputError."""
    from fairlead.api.text import yaml_documents  # noqa: PLC0415 - few dumps have ConfigMaps

    try:
        return list(yaml_documents.documents(text))
    except yaml_documents.YamlError as cause:
        raise InputError(_source(manifest, key), f"is not YAML: {cause}") from None


def _source(manifest: Manifest, key: str) -> str:
    return f"{manifest.source}: ConfigMap {manifest.ref.key}: {key}"
