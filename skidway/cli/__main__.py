"""`python -m skidway.cli` is `skidway`."""

from __future__ import annotations

import sys

from skidway.cli import main

sys.exit(main())
