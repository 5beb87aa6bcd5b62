# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that write to their roots all the time, and whether an error, or a line, ever came of it."""

from __future__ import annotations

import contextlib
import subprocess
import time

#: Writes a line, has the server commit it, reads it back; ends at the first error, or with the number of lines. Between
#: them it pauses: an emulated board that writes as fast as it can takes half a core from all tests beside it.
WRITE = """set -e
rm -f /srv/stop
: > /srv/log
n=0
while [ ! -e /srv/stop ]; do
  n=$((n + 1))
  echo "$n $(cat /proc/uptime)" | dd of=/srv/log conv=fsync,notrunc oflag=append status=none
  tail -n 1 /srv/log | grep -q "^$n "
  sleep 0.3
done
echo $n"""


@contextlib.contextmanager
def writing(lab, boards):
    """Boards ({instance: id}) write meanwhile; in the end each wrote on, with no error, and all its lines are there."""
    running = {
        name: subprocess.Popen(
            ["ssh", "-F", lab.folder / "ssh" / name, name, WRITE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in boards
    }
    try:
        write_on(lab, boards)
        yield
        write_on(lab, boards)
        for name, process in running.items():
            lab.ssh(name, "touch /srv/stop")
            said, _nothing = process.communicate(timeout=600)
            assert process.returncode == 0, f"{name}: {said}"
            numbers = [int(line.split()[0]) for line in lab.ssh(name, "cat /srv/log; rm /srv/log").splitlines()]
            assert numbers == list(range(1, int(said) + 1))
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def write_on(lab, boards, seconds=600):
    """Wait until each board has written some lines more."""
    before, end = _lines(lab, boards), time.monotonic() + seconds
    while any(now < then + 5 for now, then in zip(_lines(lab, boards), before)):
        assert time.monotonic() < end, f"a board does not write on: {before}, now {_lines(lab, boards)}"
        time.sleep(0.2)


def _lines(lab, boards):
    """How many lines of each board are in its root, as the proxy has it."""
    logs = [f"/var/lib/hetero/board-roots/fs_{board}/root/srv/log" for board in boards.values()]
    counted, end = None, time.monotonic() + 600
    while counted is None:  # one that has just started again may refuse a call
        assert time.monotonic() < end, "the proxy does not answer"
        counted = lab.try_on_proxy(f"for log in {' '.join(logs)}; do cat $log 2> /dev/null | wc -l; done")
    return [int(count) for count in counted.split()]
