"""Extenders: HTTP servers that take part in filtering, scoring, preemption and binding.

Law: no function here blocks. A call to an extender is a `CallExtender` command. The generator that
yields the call (a `Consultation`) is suspended until the answer arrives.
upstream: pkg/scheduler/extender.go
"""
