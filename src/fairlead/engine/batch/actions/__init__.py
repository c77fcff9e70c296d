"""The actions of a session. The configuration lists the actions to run and their order."""
