"""The actions of a session; the configuration names those to run, and their order."""
