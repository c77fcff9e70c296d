"""How long pods take to start and how long they run: measured in a dump, or given in a file."""
