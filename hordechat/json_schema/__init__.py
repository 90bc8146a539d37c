"""Judging values by the JSON Schemas of strangers, within bounds of time and memory."""
