# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mount namespace for the tests of a process: of their own, and that holds nobody else's roots."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import mounts


def have_own_mounts():
    """Have mounts that only this process sees, and that are over with it.

    A container that starts elsewhere on this machine would take a copy of a test's mounts with it, and an overlay that
    is in use there cannot be mounted again here (EBUSY). Likewise this process would hold what other tests have mounted
    just now, for as long as it runs.
    """
    mounts.own_mounts()
    for point, mount in reversed(mounts.mounts_below("/tmp").items()):
        if mount.kind == "overlay" or mount.source.startswith("/dev/loop"):
            mounts.unmount(point, detach=True)
