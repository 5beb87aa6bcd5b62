# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role tftp_proxy has NFS servers do, read from its template as the set-up writes it."""

from __future__ import annotations

import re
import shlex
import socketserver
import struct
import subprocess
import threading
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.selftest import check_versions
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import loopback
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import rendered

__all__ = ["loopback"]


def settings(**changes):
    """{name: all its values} of ganesha.conf."""
    found = {}
    for name, value in re.findall(r"^ *(\w+) = (.*);$", rendered("ganesha.conf.j2", **changes), re.M):
        found.setdefault(name, []).append(value)
    return found


def test_nothing_but_nfs_3_is_served():
    """Lost: everybody's files, to a tenant who opens its own by NFSv4 until the server has no descriptor left."""
    assert settings()["Protocols"] == ["3", "3"]


def test_the_kernels_server_serves_nothing_else_either():
    """Lost: the same on a proxy with tftp_proxy_exports: nfsd."""
    (versions,) = re.findall(r"^\[nfsd\]\n(.*)", rendered("nfs.conf.j2", nfs_server="nfsd"), re.M | re.S)
    found = dict(re.findall(r"^(vers[0-9.]+)=(.)$", versions, re.M))
    assert found == {"vers3": "y", "vers4": "n", "vers4.0": "n", "vers4.1": "n", "vers4.2": "n"}


class Server(socketserver.StreamRequestHandler):
    """An RPC server of these versions of NFS, at the wire (RFC 5531)."""

    versions = range(3, 4)

    def handle(self):
        while len(mark := self.rfile.read(4)) == 4:
            call = self.rfile.read(int.from_bytes(mark, "big") & 0x7FFFFFFF)
            xid, _call, _rpc, program, version = struct.unpack(">5I", call[:20])
            assert program == 100003
            fits = version in self.versions
            verdict = [0] if fits else [2, min(self.versions), max(self.versions)]
            answer = struct.pack(f">{5 + len(verdict)}I", xid, 1, 0, 0, 0, *verdict)
            self.wfile.write(struct.pack(">I", 0x80000000 | len(answer)) + answer)


@pytest.mark.parametrize("exports", ["ganesha", "nfsd"])
@pytest.mark.parametrize(("versions", "served"), [((3,), False), ((3, 4), True)])
def test_what_the_server_serves_is_read_back(loopback, monkeypatch, exports, versions, served):
    """Lost: the word that a server serves NFSv4 all the same, by a setting of another package or hand."""
    monkeypatch.setattr(Server, "versions", versions)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            check = partial(check_versions, "127.0.0.1", exports, Deadline(20), server.server_address[1])
            if served:
                unit = {"ganesha": "nfs-ganesha", "nfsd": "nfs-server"}[exports]
                with pytest.raises(HeteroError, match=rf"NFS on .*: version 4 is served, too.*restart {unit}$"):
                    check()
            else:
                check()
        finally:
            server.shutdown()


@pytest.mark.parametrize(("megabytes", "kept"), [(15, False), (17, True)])
def test_the_servers_log_has_a_bound(tmp_path, megabytes, kept):
    """Lost: the proxy's disk, and with it all roots, to a board that makes the server write a line for each request."""
    text = rendered("hetero-nfs-log.service.j2")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    assert " ; " not in line, "systemd would take what follows for another command"
    log, older = tmp_path / "ganesha.log", tmp_path / "ganesha.log.full"
    with log.open("ab") as server:
        server.write(b"x" * (megabytes << 20))
        server.flush()
        for _minute in range(2):
            subprocess.run(shlex.split(line.replace("/var/log/ganesha", str(tmp_path))), check=True)
        server.write(b"more")
    assert log.stat().st_size == (4 if kept else (megabytes << 20) + 4)
    assert older.exists() == kept
    assert not kept or older.stat().st_size == megabytes << 20
