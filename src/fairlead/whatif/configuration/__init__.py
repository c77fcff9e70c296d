"""Users' configuration files and plugins: scheduler, batch scheduler, controllers, extender."""
