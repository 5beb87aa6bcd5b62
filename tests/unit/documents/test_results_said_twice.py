# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two modules return alike is said alike. Ansible's fragments have options and attributes only, no results."""

from __future__ import annotations

import importlib

import yaml

MODULES = "ansible_collections.hetero.compute.plugins.modules"


def test_a_queue_is_the_same_of_boards_and_of_hosts():
    """Lost: a field of `queue`, to who reads the page of the other module."""
    pages = [importlib.import_module(f"{MODULES}.{name}").RETURN for name in ("board_info", "host_info")]
    boards, hosts = (yaml.safe_load(page) for page in pages)
    assert boards["queue"] == hosts["queue"]
    assert boards["reservations"] == hosts["reservations"]
