"""Users' configuration files: schedulers, plugins, controllers, autoscalers, KWOK Stages, loads."""
