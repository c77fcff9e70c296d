"""The servers that replays use: in process, on a socket, or at a URL."""
