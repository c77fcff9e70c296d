"""The configuration of the batch scheduler, and of users' plugins and actions for it."""
