# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reaches the ports of the proxy's conserver: the role's packet filter. conserver keeps what it is sent before it
knows by whom, so whoever reaches it has the proxy's memory, and all connections that root has to consoles.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import NEEDS, python, rendered

pytestmark = NEEDS

PORT = ProxyConfig.__dataclass_fields__["console_port"].default
LISTENS = """
    import os, socket, sys
    doors = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[1:]]
    os.setuid(65533)
    print("ready", flush=True)
    while True:
        doors[0].accept()
"""
REACHES = """
    import json, os, socket
    os.setuid({uid})
    reached = []
    for port in {ports}:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            reached.append(port)
        except OSError:
            pass
    print(json.dumps(reached))
"""


@contextmanager
def listening(proxy, ports):
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", textwrap.dedent(LISTENS), *map(str, ports)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.kill()


@pytest.mark.parametrize(("consoles", "uid", "open_to_it"), [(1, 65534, [4000]), (1, 0, "all"), (0, 65534, "all")])
def test_accounts_but_root_do_not_reach_conserver(network, ruled, consoles, uid, open_to_it):
    """Lost: the proxy's memory, and the operators' consoles, to any local account; or another service of the site."""
    proxy, _other = network
    ports = [PORT, PORT + 1, 4000]
    ruled(_tftp_proxy_consoles=[{"type": "serial"}] * consoles)
    with listening(proxy, ports):
        assert python(proxy, REACHES.format(uid=uid, ports=ports)) == (ports if open_to_it == "all" else open_to_it)


def test_without_consoles_the_filter_says_nothing_of_them():
    """Lost: a port of the site's own, to a set-up that serves no consoles."""
    assert str(PORT) not in rendered("filter.nft.j2")
    assert str(PORT) in rendered("filter.nft.j2", _tftp_proxy_consoles=[{"type": "serial"}])


@pytest.mark.parametrize(("number", "most"), [(1, 272), (100, 1856)])
def test_conservers_memory_has_a_bound(number, most):
    """Lost: the proxy, NFS and all, to what a board or an account has conserver keep."""
    text = rendered("hetero-consoles.service.j2", _tftp_proxy_consoles=[{"type": "serial"}] * number)
    assert f"MemoryMax={most}M\n" in text
