# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches of outlets: done is what was read back, and one session at a time talks to a PDU."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    Busy,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer, PowerDriver
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.run_folder import own_run_folder
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards

#: User ids that nobody has here.
ACCOUNTS = 64001, 64002
#: AOS 3, which goes over to its command line for several; AOS 2, which cannot; AOS 5
DIALECTS = pytest.mark.parametrize("dialect", ["menu", "menu2", "cli"])


def batch(pdu, wanted, seconds=60.0, **options):
    deadline = Deadline(seconds)
    with power.session("pdu-t", pdu.settings, pdu.secrets, deadline, str(pdu.folder)) as opened:
        return power.set_outlets(opened, wanted, deadline, **options)


@DIALECTS
def test_cycled_is_off_and_then_on(emulated, tmp_path, dialect):
    """Without it, a rebooted board might never have lost power, or one that was off would stay off."""
    pdu = emulated(dialect=dialect, outlets=boards(tmp_path, "1", "2", "3"))
    told = []
    results = batch(pdu, {"1": "on", "2": "on"})
    first = pdu.outlets["1"]["pid"]
    results = batch(pdu, {"1": "cycled", "3": "cycled", "2": "on", "8": "off"}, report=lambda *done: told.append(done))
    assert {outlet: (seen["before"], seen["after"]) for outlet, seen in results.items()} == {
        "1": ("on", "on"),
        "2": ("on", "on"),
        "3": ("off", "on"),
        "8": ("off", "off"),
    }
    assert sorted(outlet for outlet, *_rest in told) == ["1", "2", "3", "8"]
    assert not alive(first)
    assert alive(pdu.outlets["1"]["pid"])
    assert (tmp_path / "1.log").read_text().count("--- power off ---") == 1
    assert (tmp_path / "2.log").read_text().count("--- power off ---") == 0


@DIALECTS
def test_success_that_is_none_is_found_out(emulated, dialect):
    """Without it, a board with a stuck relay would be called off while its tenant still runs on it."""
    pdu = emulated(dialect=dialect, faults={"stuck": ["2"]})
    with pytest.raises(power.OutletsFailed) as caught:
        batch(pdu, {"1": "on", "2": "on", "3": "on"}, window=0.5)
    assert set(caught.value.results) == {"1", "3"}
    assert set(caught.value.errors) == {"2"}
    assert "outlet 2 of pdu-t: still off" in str(caught.value)
    assert re.search("PDU said .*([Ss]uccess|OK)", str(caught.value))
    assert "check its relay" in str(caught.value)
    assert pdu.outlets["3"]["state"] == "on"


@DIALECTS
def test_check_reads_and_does_not_switch(emulated, dialect):
    """Without it, a dry run would cut power, or guess."""
    pdu = emulated(dialect=dialect, outlets={"1": {"state": "on"}})
    results = batch(pdu, {"1": "off", "2": "on"}, check=True)
    assert [(seen["before"], seen["after"]) for seen in results.values()] == [("on", "off"), ("off", "on")]
    assert pdu.outlets["1"]["state"] == "on"
    assert pdu.outlets["2"]["state"] == "off"


def test_without_verify_nothing_is_claimed(emulated):
    """Without it, an outlet that nobody looked at would be reported as switched."""
    pdu = emulated(outlets={"1": {"state": "on"}})
    assert batch(pdu, {"1": "off"}, verify=False)["1"]["after"] is None
    assert pdu.outlets["1"]["state"] == "off"
    assert batch(pdu, {"1": "cycled"}, verify=False)["1"]["after"] is None


def test_an_outlet_that_is_not_there_does_not_stop_the_others(emulated):
    """Without it, one typing error would leave a whole rack as it was."""
    pdu = emulated()
    with pytest.raises(power.OutletsFailed, match="outlet 99 of pdu-t: no such outlet") as caught:
        batch(pdu, {"99": "on", "1": "on"})
    assert caught.value.results["1"]["after"] == "on"
    assert caught.value.before["1"] == "off"
    assert pdu.outlets["1"]["state"] == "on"


def test_a_busy_pdu_is_waited_for(emulated):
    """Without it, a play would fail whenever a colleague looks at the PDU."""
    pdu = emulated()
    colleague = socket.create_connection(("127.0.0.1", pdu.port), 5)
    colleague.recv(100)
    leaves = threading.Timer(0.6, colleague.close)
    leaves.start()
    try:
        start = time.monotonic()
        assert batch(pdu, {"1": "on"})["1"]["after"] == "on"
        assert 0.5 < time.monotonic() - start < 60
    finally:
        leaves.join()


def test_a_pdu_that_stays_busy_ends_at_the_deadline(emulated):
    """Without it, a forgotten terminal would hold every play for ever, without a word why."""
    pdu = emulated()
    with socket.create_connection(("127.0.0.1", pdu.port), 5) as colleague:
        colleague.recv(100)
        for seconds in (1, 10, 100):  # a busy machine needs longer to hear it
            start = time.monotonic()
            with pytest.raises(TimedOut) as caught:
                batch(pdu, {"1": "on"}, seconds=seconds)
            assert time.monotonic() - start < seconds + 60
            if "Another user" in str(caught.value):
                break
        assert caught.match(rf"Another user is logged in.*gave up after {seconds} s")


@DIALECTS
def test_a_hang_in_a_command_ends_at_the_deadline(emulated, dialect):
    """Without it, a PDU that dies in the middle would hold a play, or its outlets would be called switched."""
    pdu = emulated(dialect=dialect, faults={"hang": "command"})
    # in what is left of its time it is asked once more, on a new line, which hangs as well; a busy machine leaves none
    hangs = r"no answer within|it took the connection and asks for no login|its time was up before it could answer"
    for seconds in (1.0, 10.0, 100.0):  # a busy machine needs longer to reach the command
        start = time.monotonic()
        with pytest.raises((power.OutletsFailed, TimedOut), match=hangs) as caught:
            batch(pdu, {"1": "on", "2": "off", "3": "on"}, seconds=seconds)
        assert time.monotonic() - start < seconds + 60
        if isinstance(caught.value, power.OutletsFailed):
            break
    assert set(caught.value.errors) == {"1", "3"}
    assert caught.value.results["2"]["after"] == "off"
    assert PASSWORD not in repr(caught.value.failure)


def test_a_wrong_password_is_not_tried_again(emulated):
    """Without it, our retries would lock the account: three bad logins close a PDU for two minutes."""
    pdu = emulated()
    start = time.monotonic()
    secrets = {"username": "apc", "password": "no"}
    session = power.session("pdu-t", pdu.settings, secrets, Deadline(120), str(pdu.folder))
    with pytest.raises(HeteroError, match="refuses user"), session:
        pytest.fail("logged in")
    assert time.monotonic() - start < 60


def _cycle(settings, secrets, folder, queue):
    deadline = Deadline(300)
    with power.session("pdu-t", settings, secrets, deadline, folder) as opened:
        start = time.monotonic()
        power.set_outlets(opened, {"1": "cycled", "2": "cycled"}, deadline)
        queue.put((start, time.monotonic()))


def test_processes_take_turns(emulated, tmp_path):
    """Without it, two plays on one PDU would throw each other out of their sessions."""
    pdu = emulated(outlets=boards(tmp_path, "1", "2"), delay=0.01)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    plays = [
        context.Process(target=_cycle, args=(pdu.settings, pdu.secrets, str(pdu.folder), queue)) for _play in range(4)
    ]
    for play in plays:
        play.start()
    times = sorted(queue.get(timeout=300) for _play in plays)
    for play in plays:
        play.join(60)
    assert [play.exitcode for play in plays] == [0] * 4
    assert all(ended <= begun for (_begun, ended), (begun, _ended) in zip(times, times[1:]))
    assert (tmp_path / "1.log").read_text().count("--- power on ---") == 4


class Slow(PowerDriver):
    """A PDU that takes each order, and whose answers stop: after `readings` of its outlets it says nothing more."""

    readings = 0

    def login(self):
        """Anybody may."""

    def logout(self):
        """Nothing is open."""

    def status(self):
        if not self.readings:
            while not self.deadline.passed:
                self.deadline.nap()
            raise Lost("no answer within 0.0 s; last seen: what the deadline cut off", self.name, "look at the PDU")
        self.readings -= 1
        return {"1": "off", "2": "on"}

    def switch(self, outlets, state):
        return dict.fromkeys(outlets, Answer(True, "E000: Success"))


class Taken(Slow):
    """A PDU whose one place is taken for the next ten attempts."""

    attempts = hung_up = 0

    def login(self):
        Taken.attempts += 1
        if self.attempts <= 10:
            raise Busy("has another user", self.name, "wait")

    def logout(self):
        Taken.hung_up += 1


def test_a_pdu_that_is_free_again_is_asked_within_a_second(monkeypatch, tmp_path):
    """Without it, a play would wait long for a PDU that nobody uses any more, or be in a colleague's way all the time.

    Pauses take no time here.
    """
    pauses = []
    monkeypatch.setitem(registry.DRIVERS, "taken", Taken)
    monkeypatch.setattr(Deadline, "within", lambda _self, seconds: pauses.append(seconds) or Deadline(0))
    with power.session("pdu-t", {"driver": "taken"}, {}, Deadline(60), str(tmp_path)):
        assert (Taken.attempts, Taken.hung_up) == (11, 10)
    assert Taken.hung_up == 11
    assert pauses == [0.1, 0.2, 0.4, 0.8, *[1.0] * 6]


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        (2, r"outlet 1 of pdu-t: still off .* s after 'on' \(PDU said E000: Success\), when the time was up"),
        (
            1,
            r"outlet 1 of pdu-t: was off before 'on' \(PDU said E000: Success\), and not read again when",
        ),
    ],
)
def test_what_was_read_last_is_told(monkeypatch, tmp_path, readings, words):
    """Without it, an outlet that stays off would be told as a PDU that does not answer."""
    monkeypatch.setitem(registry.DRIVERS, "slow", Slow)
    monkeypatch.setattr(Slow, "readings", readings)
    deadline = Deadline(1)
    opened = power.session("pdu-t", {"driver": "slow"}, {}, deadline, str(tmp_path))
    with pytest.raises(power.OutletsFailed, match=words) as caught, opened as pdu:
        power.set_outlets(pdu, {"1": "on"}, deadline)
    assert isinstance(caught.value.errors["1"], TimedOut), "it says nothing of the outlet's relay"
    assert caught.value.errors["1"].facts["seen"] == "off"
    assert "no answer within" not in str(caught.value)


@pytest.mark.parametrize(("wanted", "orders"), [("off", ["off"]), ("on", ["on"]), ("cycled", ["off", "on"])])
def test_a_pending_outlet_is_neither(monkeypatch, tmp_path, wanted, orders):
    """Without it, an outlet that a colleague's delayed order will switch would be left out without a word."""
    monkeypatch.setitem(registry.DRIVERS, "pending", Pending)
    monkeypatch.setattr(Pending, "told", [])
    deadline = Deadline(20)
    with power.session("pdu-t", {"driver": "pending"}, {}, deadline, str(tmp_path)) as opened:
        results = power.set_outlets(opened, {"1": wanted}, deadline)
    assert Pending.told == orders
    assert (results["1"]["before"], results["1"]["after"]) == ("pending", orders[-1])


class Pending(Slow):
    """An outlet that is on its way until somebody orders otherwise."""

    told: ClassVar[list] = []

    def status(self):
        return {"1": self.told[-1] if self.told else "pending"}

    def switch(self, outlets, state):
        self.told.append(state)
        return super().switch(outlets, state)


class TestFake:
    """Driver fake, which stands in for a PDU in the tests of everything above power."""

    @pytest.fixture
    def fake(self, tmp_path):
        def write(**faults):
            path = tmp_path / "fake.json"
            path.write_text(json.dumps({"outlets": {"1": "off", "2": "on"}, "faults": faults}))
            return {"driver": "fake", "path": str(path)}

        return write

    def batch(self, settings, folder, wanted, seconds=60.0, window=0.3):
        deadline = Deadline(seconds)
        with power.session("pdu-f", settings, {}, deadline, str(folder)) as opened:
            return power.set_outlets(opened, wanted, deadline, window=window)

    def test_switches(self, fake, tmp_path):
        """Without it, tests of everything above power would need a PDU."""
        settings = fake(busy=2)
        self.batch(settings, tmp_path, {"1": "on", "2": "cycled"})
        data = json.loads((tmp_path / "fake.json").read_text())
        assert data == {"outlets": {"1": "on", "2": "on"}, "faults": {"busy": 0}}

    @pytest.mark.parametrize(("fault", "words"), [("stuck", "check its relay"), ("refused", "what this account may")])
    def test_one_bad_outlet(self, fake, tmp_path, fault, words):
        """Without it, a PDU that refuses would be waited for as if its relay were slow."""
        with pytest.raises(power.OutletsFailed, match=words) as caught:
            self.batch(fake(**{fault: ["1"]}), tmp_path, {"1": "on", "2": "off"})
        assert caught.value.results["2"]["after"] == "off"

    def test_hang(self, fake, tmp_path):
        """Without it, nothing above power could be shown to end when a PDU does not answer."""
        with pytest.raises(TimedOut, match="no answer"):
            self.batch(fake(hang=True), tmp_path, {"1": "on"}, seconds=0.3)


def test_an_unknown_driver_names_the_known(tmp_path):
    """Without it, a typing error in the inventory would be a KeyError on the proxy."""
    session = power.session("pdu-a", {"driver": "apcc"}, {}, Deadline(1), str(tmp_path))
    known = "apc, command, fake, fence, http, ipmi, redfish, snmp, uhubctl"
    with pytest.raises(BadInput, match=rf"no such power driver 'apcc' \(known: {known}\)"), session:
        pytest.fail("opened")


def test_who_reads_a_pdu_with_one_place_has_it_to_himself(emulated):
    """Without it, two of our own programs would take the PDU's one place from each other, and blame a colleague."""
    pdu = emulated()
    folder = str(pdu.folder)
    with power.session("pdu-t", pdu.settings, pdu.secrets, Deadline(60.0), folder) as opened:
        assert set(opened.status().values()) == {"off"}
        second = power.session("pdu-t", pdu.settings, pdu.secrets, Deadline(0.2), folder)
        with pytest.raises(TimedOut, match=r"still held by power \(outlets, pid "):
            second.__enter__()


@pytest.fixture
def common():
    """A folder that everybody may write to, as /tmp; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="hetero-test-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o1777)
        yield Path(folder)


def as_account(uid, work):
    """What `work` says, a text, as an account of this machine."""

    def there():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            return work()
        except HeteroError as error:
            return str(error)

    return in_child(there, Deadline(60.0), "the account's work", "see what it printed")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes two accounts: run as root")
def test_users_of_a_controller_have_a_folder_of_locks_each(common, monkeypatch):
    """Without it, who is not root could not switch at all, or two users would stop each other."""
    assert own_run_folder() == "/run/hetero"
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(common))
    for _turn in range(2):
        assert {as_account(uid, own_run_folder) for uid in ACCOUNTS} == {f"{common}/hetero-{uid}" for uid in ACCOUNTS}
    assert {path.stat().st_mode & 0o777 for path in common.iterdir()} == {0o700}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes two accounts: run as root")
@pytest.mark.parametrize("placed", ["folder", "link"])
def test_a_folder_of_locks_that_another_account_made_is_refused(common, monkeypatch, placed):
    """Without it, an account of the controller empties any file of whoever switches an outlet there next."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(common))
    mine, other = ACCOUNTS
    letter, place = common / "letter", common / f"hetero-{mine}"
    letter.write_text("mine")
    os.chown(letter, mine, mine)

    def place_it():
        folder = place if placed == "folder" else common / "theirs"
        (folder / "locks").mkdir(parents=True, mode=0o777)
        folder.chmod(0o777)
        (folder / "locks" / "pdu-t").symlink_to(letter)
        if placed == "link":
            place.symlink_to(folder)
        return "placed"

    def switch():
        with lock(own_run_folder(), "pdu-t", "power", "outlets", Deadline(60.0)):
            return "switched"

    assert as_account(other, place_it) == "placed"
    said = as_account(mine, switch)
    assert letter.read_text() == "mine"
    assert said == (
        f"{place}: is there, and is no folder of user id {mine} alone: look who made it (ls -ld), and have it removed; "
        "or set TMPDIR to a folder of your own"
    )
