# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of attaching/conftest.py, for tests that kill what works on it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.attaching.conftest import bare, boxes, four, host, pure_v2

__all__ = ["bare", "boxes", "four", "host", "pure_v2"]


def pytest_collection_modifyitems(items):
    why = None
    if os.geteuid() != 0:
        why = "containers of the system need root: run as root"
    elif not shutil.which("lxc-start"):
        why = "lxc is not installed: tools/setup test"
    for item in items if why else []:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason=why))
