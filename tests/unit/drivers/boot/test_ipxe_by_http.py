# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real iPXE, with the role's DHCP, first script, TFTP and HTTP: which file comes by which way, and is seen."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.boot.net_booted import OVER, missing, proxy

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or bool(missing()), reason=f"needs root and {', '.join(missing()) or 'what is here'}"
)

FILES = ["01-00-1a-ca-00-57-90.ipxe", "vmlinux_0", "initrd_0", OVER]


@pytest.fixture(autouse=True)
def loopback():
    """In place of conftest's network: a board has one of its own."""


def asked(seen):
    """What was asked for, in that order. iPXE asks TFTP again where its answer comes late."""
    return list(dict.fromkeys((kind, name) for kind, name, _at in seen if name))


def test_kernels_come_by_http_and_by_tftp_where_nginx_does_not_answer():
    """Lost: the time that HTTP saves; or, with nginx, all boots of a site."""
    with proxy(megabytes=0.2) as served:
        assert asked(served.boot()) == [("tftp", "boot.ipxe"), *(("http", name) for name in FILES)]
        served.stop("nginx")
        assert asked(served.boot()) == [("tftp", "boot.ipxe"), *(("tftp", name) for name in FILES)]
