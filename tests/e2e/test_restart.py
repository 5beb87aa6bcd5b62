# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy, or what it serves by, is started again under two boards that write to their roots all the time."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from conftest import FOLDER, ROOT

BOARDS = {"alice": 0, "bert": 1}
SHOW = "busctl --json=short call org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr ShowExports"
#: Writes a line, has the server commit it, reads it back; ends at the first error, or with the number of lines.
WRITE = """set -e
rm -f /srv/stop
: > /srv/log
n=0
while [ ! -e /srv/stop ]; do
  n=$((n + 1))
  echo "$n $(cat /proc/uptime)" | dd of=/srv/log conv=fsync,notrunc oflag=append status=none
  tail -n 1 /srv/log | grep -q "^$n "
done
echo $n"""


@pytest.fixture(scope="module")
def two(up):
    """Two instances, provisioned side by side."""
    plays = [
        up.start("provision_instance", instance=name, flavor="tp64.8x8", board=board) for name, board in BOARDS.items()
    ]
    for played in [up.end(play) for play in plays]:
        assert played.rc == 0, played.output
    yield up
    for name in BOARDS:
        up.terminate(name)


@pytest.fixture
def writers(two):
    """Both boards write while a test runs; afterwards each wrote on, without an error, and its lines are all there."""
    running = {
        name: subprocess.Popen(
            ["ssh", "-F", FOLDER / "ssh" / name, name, WRITE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in BOARDS
    }
    try:
        write_on(two)
        before = exports(two)
        yield two
        write_on(two)
        assert exports(two) == before == {str(board + 1): f"/tftpboot/fs_{board}" for board in BOARDS.values()}
        for name, process in running.items():
            two.ssh(name, "touch /srv/stop")
            said, _nothing = process.communicate(timeout=60)
            assert process.returncode == 0, f"{name}: {said}"
            numbers = [int(line.split()[0]) for line in two.ssh(name, "cat /srv/log; rm /srv/log").splitlines()]
            assert numbers == list(range(1, int(said) + 1))
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def lines(lab):
    """How many lines of each board are in its root, as the proxy has it."""
    logs = [f"/var/lib/hetero/roots/fs_{board}/root/srv/log" for board in BOARDS.values()]
    counted = lab.on_proxy(f"for log in {' '.join(logs)}; do cat $log 2> /dev/null | wc -l; done")
    return [int(count) for count in counted.split()]


def write_on(lab):
    """Wait until each board has written some lines more."""
    before, end = lines(lab), time.monotonic() + 60
    while any(now < then + 5 for now, then in zip(lines(lab), before)):
        assert time.monotonic() < end, f"a board does not write on: {before}, now {lines(lab)}"
        time.sleep(0.2)


def boot_ids_of(lab):
    return {name: lab.ssh(name, "cat /proc/sys/kernel/random/boot_id") for name in BOARDS}


def exports(lab):
    """{id: name} as the server says."""
    return dict(re.findall(r'\[(\d+),"(/tftpboot/[^"]+)"', lab.on_proxy(SHOW)))


def boot(lab):
    """Start the proxy node that was stopped, and wait for its ssh, as the lab does."""
    script = ROOT / "roles" / "lab" / "files" / "lab.py"
    subprocess.run([sys.executable, script, FOLDER / "lab.json", "nodes", "up"], check=True, timeout=120)


@pytest.mark.parametrize("how", [(), pytest.param(("-k",), marks=pytest.mark.long)], ids=["reboot", "power cut"])
def test_the_proxy_is_started_again(writers, how):
    """Lost: what everybody was working on, on all boards of a proxy that gets a new kernel or loses its power."""
    boards = boot_ids_of(writers)
    writers.inside("lxc-stop", "-P", FOLDER / "nodes", "-n", "proxy1", *how)
    boot(writers)
    assert int(writers.on_proxy("grep -c ' - overlay fs_' /proc/self/mountinfo")) == len(BOARDS)
    for name, board in BOARDS.items():
        again = writers.provision(name, board=board)
        assert again.changed == 0, again.output
    assert boot_ids_of(writers) == boards


@pytest.mark.parametrize(
    "command",
    [
        "systemctl restart nfs-ganesha",
        pytest.param("systemctl reload nfs-ganesha", marks=pytest.mark.long),
        pytest.param("systemctl kill --signal=KILL nfs-ganesha", marks=pytest.mark.long),
        "systemctl restart dbus",
        pytest.param("systemctl kill --signal=KILL dbus", marks=pytest.mark.long),
    ],
)
def test_what_it_serves_by_is_started_again(writers, command):
    """Lost: boards whose root is gone ("stale file handle") after an upgrade of a package on the proxy, or a crash."""
    writers.on_proxy(command)
    write_on(writers)
