"""problem_of: finds errors in a plugin class before the plugin is used.

Examples of errors are a method with the wrong parameters, and the lack of a method that another
method needs. A misspelt method name is an error too: the method would never be called.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.framework.extension_point import METHOD_NAMES, METHODS, Method
from fairlead.engine.framework.interface import Locality, Normalization


def problem_of(plugin: object) -> str:
    """Return the text of the first problem of `plugin`; "" if it has no problem."""
    return next(_problems(plugin), "")


def _problems(plugin: object) -> Iterator[str]:
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        yield "has no name: the class needs a string attribute `name`"
    methods = [method for method in METHODS if hasattr(plugin, method.name)]
    yield from misspelt_methods(plugin)
    if not any(method.makes_plugin for method in methods):
        known = ", ".join(method.name for method in METHODS if method.makes_plugin)
        yield f"implements no extension point: it has none of {known}"
    for method in methods:
        yield from _problems_of_method(plugin, method)
    yield from _problems_of_attributes(plugin)


def misspelt_methods(plugin: object) -> Iterator[str]:
    """Yield an error for each misspelt method name, such as `preFilter` instead of `pre_filter`."""
    known = {name.replace("_", ""): name for name in METHOD_NAMES}
    for name in dir(plugin):
        meant = known.get(name.replace("_", "").lower())
        if meant is not None and name != meant and not name.startswith("_"):
            yield f"has {name}, which is never called: it is spelled {meant}"


def _problems_of_method(plugin: object, method: Method) -> Iterator[str]:
    own = getattr(plugin, method.name)
    if not callable(own):
        yield f"has {method.name}, which is not a method"
        return
    if inspect.iscoroutinefunction(own) or inspect.isgeneratorfunction(own):
        yield f"must return from {method.name} directly, without async or yield"
    wanted = inspect.signature(getattr(method.protocol, method.name))
    names = [name for name in wanted.parameters if name != "self"]
    if not _takes(own, len(names)):
        yield f"must take {method.name}({', '.join(('self', *names))})"
    for group in method.needs_one_of:
        if not any(hasattr(plugin, other) for other in group):
            yield f"has {method.name} without {' or '.join(group)}"


def _takes(own: object, count: int) -> bool:
    assert callable(own)
    try:
        inspect.signature(own).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a callable without a signature
        return True
    return True


def _problems_of_attributes(plugin: object) -> Iterator[str]:
    if not isinstance(getattr(plugin, "locality", Locality.CLUSTER), Locality):
        yield "has a locality that is not a Locality"
    if not isinstance(getattr(plugin, "normalization", Normalization.NONE), Normalization):
        yield "has a normalization that is not a Normalization"
    events = getattr(plugin, "events", frozenset[EventKind]())
    if not isinstance(events, frozenset | set | tuple | list) or not all(
        isinstance(kind, EventKind) for kind in events
    ):
        yield "has events that are not a collection of EventKind"
