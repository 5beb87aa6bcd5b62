# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a PDU's password and a private key must not be found. If these fail, whoever reads a job's output, a log, the
proxy's database or its process list can switch every board of the rack, or log in as the user.

Playbooks run as verbose as they can (-vvv --diff) against the lab's PDU over real telnet; then everything that they
have printed and written is searched for a marker, as is the process list while they run.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

MARK = "Zq7-marker-password"
NEW = "/etc/hetero/new"
PRIVATE = "b3BlbnNzaC1rZXktbWFya2Vy"
#: Files that hold the password because they are its place: the proxy's credentials, the PDU itself, the user's vault.
ITS_PLACES = {"credentials.json", "lab.json", "vault.json"}


class Watch:
    """The process list while a block runs: every command line and environment that can be seen.

    Young processes are looked at each time, for a fork becomes another program; old ones now and then: looking at all
    of them each time costs as much as the plays.
    """

    OLD = 30  # looks, 0.3 s

    def __init__(self):
        self.found, self.programs, self.samples = set(), set(), 0
        self._looks = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._over.set()
        self._thread.join()

    def _look(self):
        while not self._over.wait(0.01):
            self.samples += 1
            pids = [name for name in os.listdir("/proc") if name.isdigit()]
            self._looks = {pid: self._looks.get(pid, 0) + 1 for pid in pids}
            for pid in pids:
                if self._looks[pid] > self.OLD and self.samples % self.OLD:
                    continue
                for name in ("cmdline", "environ"):
                    try:
                        data = Path("/proc", pid, name).read_bytes()
                    except OSError:
                        continue  # it has ended
                    if name == "cmdline":
                        self.programs.add(data.partition(b"\0")[0].decode(errors="replace").rpartition("/")[2])
                    if MARK.encode() in data or PRIVATE.encode() in data:
                        self.found.add((name, data[:300]))


def written(path):
    """What a file holds, without its holes: a root's is hundreds of gigabytes of them."""
    parts, end = [], 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while end < size:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing but a hole
                break
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            parts.append(os.pread(file.fileno(), end - start, start))
    return b"".join(parts)


def holding(folder, *marks, since=0.0):
    """Files below a folder that hold one of the marks; what is mounted there lies elsewhere in it, or is no file."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.ismount(os.path.join(place, name))]
        for path in (Path(place, name) for name in names if name not in ITS_PLACES):
            try:
                seen = path.lstat()
                if stat.S_ISREG(seen.st_mode) and seen.st_mtime >= since:
                    data = written(path)
                    found += [str(path) for mark in marks if mark.encode() in data]
            except FileNotFoundError:
                continue
    return found


@pytest.fixture
def pdus(tmp_path):
    """A PDU that works, and one that shows a screen with the password where its menu should be."""
    made = []
    try:
        for name, faults in (("good", {}), ("odd", {"screen": f"------- {MARK} -------\n\n     1- {MARK} ON?\n"})):
            (tmp_path / f"pdu-{name}").mkdir()
            made.append(EmulatedPdu(tmp_path / f"pdu-{name}", password=MARK, faults=faults))
        yield made
    finally:
        for pdu in made:
            pdu.stop()


@pytest.fixture
def plays(tmp_path, pdus):
    """The playbooks; p1 has the good PDU, p2 the odd one."""
    tmp_path.chmod(0o755)
    made = []
    try:
        for number, pdu in enumerate(pdus, 1):
            wired = (pdu.settings, {"username": "apc", "password": MARK})
            made.append(Proxy(tmp_path / f"p{number}", number, pdu=wired))
        books = Playbooks(tmp_path, ["p1", "p2"])
        books.env["ANSIBLE_LOG_PATH"] = str(tmp_path / "ansible.log")
        yield books
    finally:
        for proxy in made:
            proxy.remove()


def by_hand(folder, port):
    """A play of the user's own: the password from a vault as an argument, and the file that the set-up writes."""
    (folder / "vault.json").write_text(json.dumps({"secret_of_pdu": MARK}))
    (folder / "vault.json").chmod(0o600)
    given = {"host": "127.0.0.1", "port": port, "driver": "apc", "username": "apc", "outlets": ["3"], "state": "on"}
    tasks = [
        {"hetero.compute.pdu_power": dict(given, password="{{ secret_of_pdu }}")},
        {"hetero.compute.pdu_power": dict(given, password="{{ secret_of_pdu }}x", timeout=3), "ignore_errors": True},
        {
            "hetero.compute.node_files": {
                "files": [{"path": f"{NEW}/credentials.json", "secret": "{{ secret_of_pdu }}", "mode": "0600"}],
                "folders": {NEW: "0755"},
            }
        },
    ]
    play = [{"hosts": "p1", "gather_facts": False, "vars_files": ["vault.json"], "tasks": tasks}]
    (folder / "by_hand.json").write_text(json.dumps(play))
    return str(folder / "by_hand.json")


def test_the_marker_is_nowhere(tmp_path, plays, pdus):
    began = time.time()
    loud = ("-vvv", "--diff")
    request = dict(instance="jackie", flavor=FLAVOR)
    (tmp_path / "id_private").write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PRIVATE}\n-----END\n")
    with Watch() as watch:
        ends = dict(
            provision=plays.play("provision_instance", *loud, order=["p1"], **request),
            dry=plays.play("provision_instance", *loud, "--check", order=["p1"], instance="bob", flavor=FLAVOR),
            reboot=plays.play("reboot_instance", *loud, instance="jackie"),
            status=plays.play("status", *loud),
            own=plays.end(plays.start_file(by_hand(tmp_path, pdus[0].port), *loud)),
            odd=plays.end(plays.start("provision_instance", *loud, order=["p2"], instance="eve", flavor=FLAVOR)),
            private=plays.play(
                "provision_instance", *loud, instance="al", flavor=FLAVOR, key_file=tmp_path / "id_private"
            ),
        )
        state = tmp_path / "p1" / "var" / "lib" / "hetero"
        there = holding(tmp_path, MARK)
        ends["terminate"] = plays.play("terminate_instance", *loud, instance="jackie")
    codes = {name: rc for name, (rc, _output) in ends.items()}
    # they did what they were to do, so that there was something to find
    assert {name for name, rc in codes.items() if rc} == {"odd", "private"}, codes
    assert "refuses user 'apc'" in ends["own"][1]
    assert "********" in ends["odd"][1]
    assert "That is a private key" in ends["private"][1]
    assert pdus[0].logouts >= 4
    assert pdus[0].outlets["3"]["state"] == "on"
    assert "telnet" in watch.programs
    assert watch.samples > 20
    assert (tmp_path / "ansible.log").stat().st_size > 10000

    assert [name for name, (_rc, output) in ends.items() if MARK in output or PRIVATE in output] == []
    assert watch.found == set()
    assert there == []
    assert holding(tmp_path, MARK) == []
    assert [path for path in holding(tmp_path, PRIVATE) if not path.endswith("id_private")] == []
    assert holding(Path("/var/log"), MARK, PRIVATE, since=began) == []

    own = state / "reboot-key" / "id_ed25519"
    inner = own.read_text().splitlines()[4]  # where the secret half begins
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert [path for path in holding(tmp_path, inner) if path != str(own)] == []
    assert [name for name, (_rc, output) in ends.items() if inner in output] == []

    etc, run = tmp_path / "p1" / "etc" / "hetero", tmp_path / "p1" / "run" / "hetero"
    for path in (state / "state.db", etc / "credentials.json", etc / "new" / "credentials.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert (etc / "new" / "credentials.json").read_text() == MARK
    for path in (state / "board-roots", state / "images", run / "locks", run / "jobs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
