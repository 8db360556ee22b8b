"""The same odd and broken streams for us and for peers: who notices, who tells a call that nobody made.

cases    known calls in, streams that say them in odd ways, or in part, out
worker   a reader of ``bench.readers`` in its own environment: addresses in, calls out
judge    what was said and what was heard in, one word out
run      all of it, and the tables of docs/promises.md: ``make battery``
"""
