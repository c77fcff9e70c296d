"""Replays recorded exchanges with an API server: its responses, and the output of kubectl.

- `comparison/` compares a response, a watch or printed output with the recording.
- `replay/` reads recorded requests and sends them again.
- `server/` contains the servers that receive the requests.
- `server_choice` chooses the server for each case.
"""
