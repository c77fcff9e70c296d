"""The servers that replays use: in this process, on a socket, or at a URL."""
