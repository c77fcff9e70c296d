"""Discovery: what a server serves, in the forms in which clients ask for it."""
