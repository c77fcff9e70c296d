"""A session: it opens, runs its actions in order, and closes with statuses and events.

Only `Session.move` changes the status of a task, so that the idle and releasing amounts always
match the statuses. The one exception is that `Session.dispatch_ready` sets allocated tasks to
BINDING, which changes no amount.
"""
