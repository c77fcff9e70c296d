"""PluginFault: an error in a user's plugin, with its location in the source code."""

from __future__ import annotations

from types import TracebackType
from typing import Final

_TEXT_MAX: Final = 300


class PluginFault(Exception):  # noqa: N818 - a fault of the plugin, not an error of ours
    """Raised for an error in a user's plugin; the text names plugin, method, cause and line."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(text)
        self.plugin = plugin


def fault_in(plugin: str, method: str, what: str) -> PluginFault:
    """Return the fault with the text `what` for the plugin's `method`."""
    return PluginFault(plugin, f"plugin {plugin!r} failed in {method}: {what}")


def fault_of(plugin: str, method: str, cause: BaseException) -> PluginFault:
    """Return the fault for an exception raised by the plugin's `method`."""
    if isinstance(cause, PluginFault):
        return cause  # raised by another plugin, which this plugin called
    return fault_in(plugin, method, f"{describe(cause)}{_place(cause.__traceback__)}")


def describe(cause: BaseException) -> str:
    """Return the type of `cause` and its shortened text; "(no text)" if its `__str__` raises."""
    try:
        text = str(cause)
    except Exception:  # noqa: BLE001 - whatever a user's exception does, it is described
        text = "(no text)"
    name = type(cause).__name__
    return f"{name}: {text[:_TEXT_MAX]}" if text else name


def _place(trace: TracebackType | None) -> str:
    """Return the place at which the exception was raised, such as ` (cost.py:12)`."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f" ({file}:{trace.tb_lineno})"
