# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one of the programs here: python3 heteroci PROGRAM …"""

from __future__ import annotations

import importlib
import os
import sys

# by the folder, and not by PYTHONPATH, which the job's own programs would have, too
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.exit(importlib.import_module(f"heteroci.{sys.argv.pop(1)}").main())
