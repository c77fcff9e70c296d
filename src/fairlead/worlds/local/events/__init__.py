"""Writes controllers' events as Event objects: counted, aggregated, and deleted after an hour."""
