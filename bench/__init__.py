"""The benchmark of streamnorm; ``run.py`` is the way in."""
