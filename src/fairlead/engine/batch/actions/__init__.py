"""The actions of a session; the configuration lists the actions to run, in order."""
