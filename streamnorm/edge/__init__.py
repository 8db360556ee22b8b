"""The only room that waits: responses, iterables and takes in, an async stream of events out.

Rule: whatever is opened or wrapped here is closed on every way out; no word of a wire is known here.
"""
