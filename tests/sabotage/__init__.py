"""Protections removed one by one, each by a patch of its own: does the promise's test notice?

rows   the patches: a file, its very text, what stands there instead
run    applies each in a copy of the tree, runs the tests of its promise, expects red
"""
