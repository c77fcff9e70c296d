"""Ask "what if?": snapshots and scenarios in, runs of the engine, differences and reports out.

Law: everything a user gives is checked here, before anything runs, and every refusal is one
`InputError` naming file, object and field. Decisions are made below, in the engine; this package
only sets up worlds, listens to them and compares what came of them.
"""
