"""Extenders: HTTP servers that take part in filtering, scoring, preemption and binding.

Law: nothing here blocks. A call is a `CallExtender` command; the generator that makes it (a
`Consultation`) is suspended until the answer arrives.
upstream: pkg/scheduler/extender.go
"""
