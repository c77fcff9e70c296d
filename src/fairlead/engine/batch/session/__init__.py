"""A session: opened, its actions run in order, and closed with statuses and events.

Law: tasks move through `Session.move` only, so idle and releasing amounts always agree with it.
"""
