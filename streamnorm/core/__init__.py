"""The call state machine, and what a parser is: what a wire says in, events out.

Rule: sans-IO and of no provider. Whatever decides when a call exists, grows or ends is in ``calls``.
"""
