# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which folders of this host containers run now: anybody may start one in a folder of his own (option lxcpath), and
it has what its device cgroup opens to it all the same.
"""

from __future__ import annotations

from . import monitors


def in_use() -> list[str]:
    """Folders in which a container of root's runs now; what an account without rights says counts for nothing."""
    return sorted({lxcpath for lxcpath, _name in monitors.of_root()})
