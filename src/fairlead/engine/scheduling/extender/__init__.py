"""Extenders: HTTP servers that take part in filtering, scoring, preemption and binding.

Law: nothing here blocks. A call leaves as a `CallExtender` command; the calling generator (a
`Consultation`) is suspended and continues with the answer.
upstream: pkg/scheduler/extender.go
"""
