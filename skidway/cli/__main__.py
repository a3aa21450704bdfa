"""Makes `python -m skidway.cli` the same as the command `skidway`."""

from __future__ import annotations

import sys

from skidway.cli import main

sys.exit(main())
