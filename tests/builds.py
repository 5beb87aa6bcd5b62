# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each play would make anew is made once for all plays of a test run: a third of what a play costs.

Packed modules, their code and that of templates (tests/callbacks). Only where HETERO_BUILDS names a folder, as
tests/run does, which begins with an empty one: a packed module in it is known by Ansible's release and its name alone,
so a module that was changed would be taken as it was.
"""

from __future__ import annotations

import os
from pathlib import Path


def shared():
    """For the environment of ansible and ansible-playbook."""
    if not os.environ.get("HETERO_BUILDS"):
        return {}
    return dict(
        HETERO_BUILDS=os.environ["HETERO_BUILDS"],
        ANSIBLE_CALLBACK_PLUGINS=str(Path(__file__).parent / "callbacks"),
        ANSIBLE_CALLBACKS_ENABLED="shared_builds,kept_templates",
        # ansible itself has callbacks only where it is told so
        ANSIBLE_LOAD_CALLBACK_PLUGINS="true",
    )
