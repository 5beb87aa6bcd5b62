# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role tftp_proxy has nfs-ganesha do, read from its template as the set-up writes it."""

from __future__ import annotations

import re

from ansible_collections.hetero.compute.tests.unit.boot.test_neighbours import rendered


def settings(**changes):
    """{name: all its values} of ganesha.conf."""
    found = {}
    for name, value in re.findall(r"^ *(\w+) = (.*);$", rendered("ganesha.conf.j2", **changes), re.M):
        found.setdefault(name, []).append(value)
    return found


def test_nothing_but_nfs_3_is_served():
    """Lost: everybody's files, to a tenant who opens its own by NFSv4 until the server has no descriptor left."""
    assert settings()["Protocols"] == ["3", "3"]
