"""Makes `python -m skidway` the same as the command `skidway`."""

from __future__ import annotations

import sys

from skidway.cli import main

sys.exit(main())
