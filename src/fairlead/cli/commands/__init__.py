"""The commands: `command` declares the options, `run` does the work and is imported when called."""
