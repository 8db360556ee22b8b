"""Recorded streams: bytes as they came in, a file that replays to the same events out.

Rule: secrets never reach a file, and what was read is never lost because it could not be written.
"""
