"""A session: it opens, runs its actions in order, and closes with statuses and events.

Law: tasks change status only in `Session.move`, so idle and releasing amounts always match them.
"""
