# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power drivers of a site's own that never return, or end their process: each is an error of its own PDU alone."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.readiness import readable
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside import loading
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import (
    driver_process,
    own_drivers,
    registry,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power

#: Outlets that are words in a file, with a meter.
DRIVER = """\
import json
import os
import time

from hetero_drivers.power import Answer, Drawn, Lost, PowerDriver

POWER_API = 1


class Slow(PowerDriver):
    needs_host = False
    measures = True

    def __init__(self, *words):
        super().__init__(*words)

    @classmethod
    def wrong(cls, name, settings):
        return iter(())

    def login(self):
        self.dialect = "slow"

    def logout(self):
        self.dialect = None

    def status(self):
        with open(self.settings["path"]) as file:
            return json.load(file)

    def switch(self, outlets, state):
        states = {**self.status(), **dict.fromkeys(outlets, state)}
        with open(self.settings["path"], "w") as file:
            json.dump(states, file)
        return {outlet: Answer(True, state) for outlet in outlets}

    def drawn(self, outlets):
        return {outlet: Drawn(watts=7.5, kwh=None) for outlet in outlets}
"""
FOREVER = "while True: pass"
#: Method → its first line, before which it hangs.
BEGINS = {
    "making": "        super().__init__",
    "login": '        self.dialect = "slow"',
    "status": '        with open(self.settings["path"]) as',
    "switch": "        states = {**",
}
LOGOUT, DRAWN, WRONG = "        self.dialect = None", "        return {outlet: Drawn", "        return iter(())"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that saves the driver, and one that opens a session with a PDU by it."""
    folder = tmp_path / "power_drivers"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(registry, "OWN_FOLDER", str(folder))
    monkeypatch.setattr(driver_process, "GRACE", 0.5)
    outlets = tmp_path / "outlets"
    outlets.write_text(json.dumps({"1": "off", "2": "on"}))

    def save(before="", what=FOREVER):
        assert before in DRIVER
        (folder / "slow.py").write_text(DRIVER.replace(before, f"        {what}\n{before}", 1) if before else DRIVER)

    def opened(seconds=20.0):
        settings = {"driver": "slow", "path": str(outlets)}
        return power.session("pdu-x", settings, {"password": "geheim-7"}, Deadline(seconds), str(tmp_path / "run"))

    save()
    return save, opened


def test_it_is_asked_and_tells_of_itself_as_any_other(site):
    """Lost: a driver of a site's own; its name for a look, and what its outlets draw."""
    with site[1]() as session:
        assert session.status() == {"1": "off", "2": "on"}
        assert session.dialect == "slow"
        assert power.set_outlets(session, {"1": "cycled"}, Deadline(20))["1"]["after"] == "on"
        assert session.drawn(["1"])["1"].watts == 7.5


def test_what_it_tells_of_itself_may_be_computed(site, tmp_path):
    """Lost: all boards of a PDU, to an AttributeError, where its driver computes what to see to."""
    computed = "    @property\n    def stuck(self):\n        return f'see to {len(self.status())} outlets'\n\n"
    path = tmp_path / "power_drivers" / "slow.py"
    path.write_text(DRIVER.replace("    def login(self)", f"{computed}    def login(self)"))
    with site[1]() as session:
        assert (session.stuck, session.status()) == ("see to 2 outlets", {"1": "off", "2": "on"})


@pytest.mark.parametrize("how", [FOREVER, "time.sleep(3600)"])
@pytest.mark.parametrize("where", BEGINS)
def test_one_that_never_returns_is_ended(site, where, how):
    """Lost: each look at the node's boards, of whatever PDU, to a socket of one driver without a timeout."""
    save, opened = site
    save(BEGINS[where], how)
    began = time.monotonic()
    with pytest.raises(HeteroError) as raised, opened(1.5) as session:
        power.set_outlets(session, {"1": "on"}, Deadline(1.5))
    errors = list(getattr(raised.value, "errors", {"": raised.value}).values())
    assert all(isinstance(error, TimedOut) for error in errors), "no outlet and no request is at fault"
    call = "login" if where == "making" else where
    assert f"its driver did not return from {call} in time, and was ended" in str(errors[0])
    assert "slow.py: each of its waits ends at self.deadline" in str(errors[0])
    assert time.monotonic() - began < 15


def test_what_hung_switches_nothing_later(site, tmp_path):
    """Lost: who gets the board next, to an outlet that a driver switches on long after it was given up."""
    save, opened = site
    save(BEGINS["switch"], "time.sleep(2.5)")
    with pytest.raises(HeteroError), opened(0.5) as session:
        power.set_outlets(session, {"1": "on"}, Deadline(0.5))
    time.sleep(3)
    assert json.loads((tmp_path / "outlets").read_text()) == {"1": "off", "2": "on"}


def test_a_meter_that_hangs_leaves_the_outlets_as_they_are_read(site, monkeypatch):
    """Lost: the power of a board, to a meter that does not answer."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn

    monkeypatch.setattr(drawn, "PATIENCE", 0.2)
    save, opened = site
    save(DRAWN)
    with opened() as session:
        assert session.drawn(["1"]) == {}
        assert session.status() == {"1": "off", "2": "on"}, "by a session anew"


def test_one_that_does_not_log_out_is_ended(site):
    """Lost: the end of a play, to a farewell that nobody answers."""
    save, opened = site
    save(LOGOUT)
    with pytest.raises(HeteroError, match="did not return from logout in time"), opened(1.0) as session:
        session.status()


@pytest.mark.parametrize("how", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_one_that_ends_its_process_ends_no_other(site, how):
    """Lost: the boots of all boards of a call, without a word, to a library that crashes."""
    save, opened = site
    save(BEGINS["status"], how)
    said = r"pdu-x: its driver broke off \(it ended its process\): correct .*slow.py"
    with pytest.raises(BadInput, match=said), opened() as session:
        session.status()


def test_a_look_at_its_settings_ends(site, monkeypatch):
    """Lost: the set-up of a node, which says nothing for ever."""
    monkeypatch.setattr(own_drivers, "LOOK", 0.5)
    site[0](WRONG)
    ((key, error),) = registry.driver_of("slow", "pdu-x").wrong("pdu-x", {})
    assert (key, error.what) == ("driver", "its driver looks at its settings for 0.5 s")


@pytest.mark.parametrize(("seconds", "ends"), [(8, False), (15, True)])
def test_a_look_at_its_settings_takes_seconds_at_most(site, monkeypatch, seconds, ends):
    """Lost: minutes of each set-up, for each PDU of a driver that hangs; or what one finds that asks its PDU."""

    def played(look, deadline, thing, remedy):
        if deadline.left < seconds:
            raise TimedOut("did not end", thing, remedy)
        return look()

    monkeypatch.setattr(own_drivers, "in_child", played)
    found = registry.driver_of("slow", "pdu-x").wrong("pdu-x", {})
    assert [error.what for _key, error in found] == ["its driver looks at its settings for 10 s"] * ends


@pytest.mark.parametrize(
    ("line", "said"), [(FOREVER, "it does not end within 0.5 s"), ("import os; os._exit(0)", "it ends its process")]
)
def test_an_import_ends(site, tmp_path, monkeypatch, line, said):
    """Lost: all work on a node, to a file that asks a server when it is imported."""
    monkeypatch.setattr(loading, "IMPORT", 0.5)
    (tmp_path / "power_drivers" / "slow.py").write_text(f"POWER_API = 1\n{line}\n")
    with pytest.raises(BadInput, match=f"cannot be imported: {said}"):
        registry.driver_of("slow", "pdu-x")


def test_errors_keep_their_kind_and_hold_no_secret(site):
    """Lost: another try at a PDU that is busy; or a password, to the line in which a driver broke off."""
    save, opened = site
    save(BEGINS["status"], 'raise ValueError(f"no {self.secrets}")')
    with pytest.raises(BadInput, match=r"its driver broke off \(ValueError: no ") as raised, opened() as session:
        session.status()
    assert "geheim-7" not in str(raised.value)
    save(BEGINS["status"], 'raise Lost("is away", self.name, "look")')
    with pytest.raises(TimedOut, match=r"pdu-x: is away \(gave up after 1 s\): look"), opened(1.0) as session:
        session.status()


def test_its_process_holds_no_lock_of_another(tmp_path):
    """Lost: another board or PDU, whose lock stays taken as long as this session goes on."""
    with open(tmp_path / "pdu-x", "w") as own, open(tmp_path / "board3", "w") as another:
        for file in (own, another):
            fcntl.flock(file, fcntl.LOCK_EX)
        session = driver_process.Apart(lambda call, words, left: [call, words], "pdu-x")
        assert session.ask("status", [1], 20.0) == ["status", [1]]
    # both are closed, and with them their locks, if nobody else has these
    with open(tmp_path / "board3") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(tmp_path / "pdu-x") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    session.end()
    with open(tmp_path / "pdu-x") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_it_ends_also_where_its_parent_was_killed():
    """Lost: a processor of the node, and the PDU's lock, for ever, to a play that was killed at the wrong time."""
    script = (
        f"import os, time, {driver_process.__name__} as driver_process; driver_process.GRACE = 0.2\n"
        "def work(call, words, left):\n    print(os.getpid(), flush=True)\n    time.sleep(600)\n"
        "driver_process.Apart(work, '').ask('login', [], 1.0)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        ended = readable([parent.stdout], 30.0)  # the child has it open as long as it runs
        if not ended:
            os.kill(pid, signal.SIGKILL)
        assert ended
        assert parent.stdout.read() == b""
