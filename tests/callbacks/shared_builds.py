# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback of no event: plays of one test run take the modules that another of them has packed (tests/builds.py).

Ansible packs each module once a play, into a folder that ends with the play; here that folder is a link.
"""

from __future__ import annotations

import os

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: shared_builds
type: aggregate
short_description: Share packed modules between plays
description: Lays a link to the folder that the environment's HETERO_BUILDS names where Ansible keeps packed modules.
author: hetero.compute contributors (@hetero-compute)
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "shared_builds"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        folder = os.path.join(os.environ["HETERO_BUILDS"], __version__)
        os.makedirs(folder, exist_ok=True)
        os.symlink(folder, os.path.join(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache"))
