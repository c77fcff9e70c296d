"""Replays recorded exchanges with an API server: its responses, and the output of kubectl.

comparison/     compares a response, a watch or printed output with the recording
replay/         reads recorded exchanges and sends them again
server/         the servers they are sent to
server_choice   which server replays which case
"""
