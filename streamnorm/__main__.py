"""``python -m streamnorm`` is the command ``streamnorm``."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
