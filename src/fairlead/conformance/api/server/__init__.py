"""The servers that replays run against: in process, on a socket, or behind a URL."""
