# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests share: processes they start find the collection, and hypothesis keeps its examples in build/.

Fixtures are left to the subjects' own folders.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import configuration

ROOT = Path(__file__).resolve().parents[2]

# ansible-test runs a copy that lies at …/ansible_collections/hetero/compute, and brings its own ansible by PYTHONPATH;
# a clone has a link to itself in build/
COLLECTIONS = ROOT.parents[2] if ROOT.parts[-3:] == ("ansible_collections", "hetero", "compute") else ROOT / "build"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(COLLECTIONS), os.environ.get("PYTHONPATH")]))

configuration.set_hypothesis_home_dir(ROOT / "build" / "hypothesis")
