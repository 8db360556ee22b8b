"""Text and JSON: characters in, exact values, canonical forms and safe text out.

Rule: no events, no providers, no I/O; everything here is a function of its arguments.
"""
