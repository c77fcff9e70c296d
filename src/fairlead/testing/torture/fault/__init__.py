"""A world, an extender, webhooks and a plugin that sometimes fail on purpose."""
