"""Looking for a promise that does not hold, for half an hour: ``make prove``.

run      all parts one after the other, their progress, the report
damage   known streams damaged by the million (tests/proof)
fuzz     bytes that a coverage-guided engine makes up: frames, wires, takes, bodies, posts
cuts     every stream there is, cut everywhere
kills    processes killed while they store
soak     streams from loopback under random faults and readers: wrong calls, leaks, memory

Rule: a part is a function of a ``Share`` (seconds, seed, how to tell) and gives a ``Report``.
"""
