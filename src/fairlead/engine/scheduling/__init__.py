"""One pod at a time: the queue, the scheduling and binding cycle, preemption.

Law: sans-IO; `Scheduler.handle` and `handle_deadline` are the only entrances, commands the only
way out.
"""
