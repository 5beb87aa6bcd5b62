# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role tftp_proxy has nfs-ganesha do, read from its template as the set-up writes it."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.boot.test_neighbours import rendered


def settings(**changes):
    """{name: all its values} of ganesha.conf."""
    found = {}
    for name, value in re.findall(r"^ *(\w+) = (.*);$", rendered("ganesha.conf.j2", **changes), re.M):
        found.setdefault(name, []).append(value)
    return found


def test_nothing_but_nfs_3_is_served():
    """Lost: everybody's files, to a tenant who opens its own by NFSv4 until the server has no descriptor left."""
    assert settings()["Protocols"] == ["3", "3"]


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
