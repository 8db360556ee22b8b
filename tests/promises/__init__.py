"""What is promised, which tests show it, and what their last runs gave: ``docs/promises.md``."""
