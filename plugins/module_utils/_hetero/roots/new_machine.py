# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of an image's root becomes one instance's own: the root of a container, or of a guest's disk."""

from __future__ import annotations

from . import cloud_init, machine_identity


def make_own(root: str, name: str, keys: str, user_data: str | None, keep: str) -> str:
    """Put into a fresh root what makes it one instance's; return its public host key, as a line.

    :param keys: the user's public keys, one a line.
    :param user_data: what cloud-init gets.
    :param keep: a folder that only root can read, where the private half of the host key is made.
    """
    machine_identity.settle(root, name)
    machine_identity.put_key(root, keys)
    if user_data:
        cloud_init.put_seed(root, user_data, name)
    return machine_identity.put_host_key(root, name, keep)
