"""Acting on calls: a model, tools and a history in, a loop of turns and settled calls out.

Rule: only a whole call is run, once, and what ran is known even if the process dies.
"""
