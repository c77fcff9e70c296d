"""Configuration files and plugins of users: scheduler, batch scheduler, controllers, extender."""
