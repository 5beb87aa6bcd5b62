# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of this host in which containers run now.

Anybody may start one in a folder of his own (option lxcpath), and its device cgroup counts too.
"""

from __future__ import annotations

from . import monitors


def in_use() -> list[str]:
    """Return the folders in which containers of root run now. Claims of accounts without rights do not count."""
    return sorted({lxcpath for lxcpath, _name in monitors.of_root()})
