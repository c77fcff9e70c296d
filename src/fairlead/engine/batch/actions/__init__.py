"""What a session does, in the order of the configuration."""
