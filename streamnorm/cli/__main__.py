"""``python -m streamnorm.cli``: the same as the ``streamnorm`` command."""

import sys

from ..cli import main

sys.exit(main())
