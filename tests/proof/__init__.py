"""The proof machine: streams that are known, damaged in every way, read twice and compared.

conversations  a seed in, a valid stream and the calls it says out
damage         frames or bytes in, broken frames or bytes out
frames, readers  bytes in, the calls that may be told as whole out: slow, plain, and without a
               line of the engine
judge          one damaged stream in, what the engine told beyond both readings out
run            a million of them, with figures: ``python -m tests.proof.run``
"""
