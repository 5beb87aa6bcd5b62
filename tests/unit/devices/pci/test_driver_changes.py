# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of bindings: all devices or none, what is on disk before a device is touched, and what is made good later.

Tests devices/pci/binding_change.py, devices/pci/change_steps.py, devices/pci/journal.py,
nodes/compute_host/pci_restore.py.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused, StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.binding_change import change_driver
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.journal import Journal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import pci_restore

CARD = ["0000:01:00.0", "0000:01:00.1", "0000:01:00.2"]
NATIVE = ["nouveau", "snd_hda_intel", "xhci_hcd"]


def ask(host, driver="vfio-pci", names=("01:00.0",), check=False, timeout=60.0, **more):
    """(result, Change) of a request."""
    change = Change(check)
    asked = {"devices": list(names), "driver": driver, "persistent": True, "force": False, **more}
    return change_driver(asked, change, Deadline(timeout), host.paths), change


def drivers(host):
    return [host.driver(address) for address in CARD]


def test_a_card_goes_to_guests_and_comes_back(card):
    """The whole way there and back, and each second run changes nothing."""
    result, change = ask(card)
    assert change.changed
    assert [(one["before"], one["after"]) for one in result["devices"]] == [(was, "vfio-pci") for was in NATIVE]
    assert drivers(card) == ["vfio-pci"] * 3
    assert not ask(card)[1].changed
    result, change = ask(card, "default")
    assert change.changed
    assert [one["after"] for one in result["devices"]] == drivers(card) == NATIVE
    assert [card.override(address) for address in CARD] == [None] * 3
    assert not ask(card, "default")[1].changed
    assert not os.path.exists(card.paths.journal)
    assert not os.path.exists(card.paths.rules)


def test_the_override_comes_first_and_the_probe_last(card):
    """In another order a third driver may take the card in between, or none at all."""
    ask(card)
    words = [line.split()[0].rpartition("/")[2] for line in card.writes]
    assert words == ["driver_override", "unbind", "drivers_probe"] * 3


def test_everything_is_on_disk_before_a_device_is_touched(card):
    """Whatever kills the run from here on, somebody knows how it was."""
    seen = []

    def look(_path, _value):
        with open(card.paths.journal, encoding="utf-8") as file:
            seen.append(json.load(file)["operations"][0])

    card.before_write.append(look)
    ask(card)
    assert seen[0]["devices"] == {address: dict(driver=driver, override=None) for address, driver in zip(CARD, NATIVE)}
    assert (seen[0]["driver"], seen[0]["rules"]) == ("vfio-pci", dict.fromkeys(CARD))


def test_check_mode_touches_nothing(card):
    """--check on a machine in use."""
    result, change = ask(card, check=True)
    assert change.changed
    assert [one["after"] for one in result["devices"]] == ["vfio-pci"] * 3
    assert card.writes == []
    assert not os.path.exists(card.paths.rules)
    assert "0000:01:00.1" in str(change.diff)


@pytest.mark.parametrize("function", [0, 1, 2])
@pytest.mark.parametrize("word", ["unbind", "drivers_probe", "driver_override"])
def test_one_function_fails_and_the_card_is_as_before(card, function, word):
    """Half a card on each side serves neither the host nor a guest."""
    card.fails[word, "vfio-pci" if word == "driver_override" else CARD[function]] = errno.EROFS
    before = os.path.exists(card.paths.rules)
    with pytest.raises(StepFailed, match="all devices are as they were"):
        ask(card)
    assert drivers(card) == NATIVE
    assert [card.override(address) for address in CARD] == [None] * 3
    assert os.path.exists(card.paths.rules) == before
    assert not os.path.exists(card.paths.journal)


def test_what_cannot_be_put_back_is_said_and_stays_in_the_journal(card):
    """A card that hangs between two drivers must not be taken for one that is as it was."""
    card.fails["unbind", CARD[1]] = errno.EROFS
    card.fails["bind", CARD[0]] = errno.EBUSY
    with pytest.raises(StepFailed, match="not all could be put back: 0000:01:00"):
        ask(card)
    assert os.path.exists(card.paths.journal)
    card.fails.clear()
    result, _change = ask(card, "default")
    assert drivers(card) == NATIVE
    assert not os.path.exists(card.paths.journal)
    assert result["pending"] == []


def test_a_driver_that_probes_to_nothing_is_no_success(card):
    """A stub that is not in the kernel takes nothing, and the kernel says nothing."""
    card.native = dict.fromkeys(card.native)
    card.fails["drivers_probe", CARD[2]] = lambda: (card.folder(CARD[2]) / "driver_override").write_text("other\n")
    with pytest.raises(StepFailed, match="as they were"):
        ask(card)
    assert drivers(card) == NATIVE


#: Seconds that a holder stays unless it is told to go: whoever waits for it is far behind whoever does not.
LONG = 60


def hold(card, path):
    """A kernel that lets a device go only when `path` is there."""

    def wait():
        end = time.monotonic() + LONG
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)

    card.fails["unbind", CARD[1]] = wait


def test_a_holder_that_outlives_the_limit(card, tmp_path):
    """The kernel waits as long as the guest lives: the user gets an answer in time, and one more run ends it."""
    gone = tmp_path / "gone"
    hold(card, gone)
    start = time.monotonic()
    result, _change = ask(card, timeout=2)
    assert time.monotonic() - start < LONG / 2
    assert result["failed"]
    assert result["pending"] == [CARD[1]]
    assert "neither be ended nor taken back" in result["msg"]
    assert "guest" not in result["msg"]  # nobody is named who was not seen
    again, _change = ask(card, timeout=0.3)
    assert again["pending"] == CARD
    gone.touch()
    result, change = ask(card)
    assert result["notes"] == [
        "0000:01:00.0, 0000:01:00.1, 0000:01:00.2 to vfio-pci was left by an earlier run, and is done"
    ]
    assert change.changed
    assert drivers(card) == ["vfio-pci"] * 3
    assert not os.path.exists(card.paths.journal)


def test_another_card_does_not_wait_for_it(card, tmp_path):
    """One guest that does not end must not keep a whole host from being changed."""
    card.add("0000:02:00.0", "8086:10d3", "e1000e", group=8)
    gone = tmp_path / "gone"
    hold(card, gone)
    ask(card, timeout=0.3)
    start = time.monotonic()
    result, _change = ask(card, names=["02:00.0"])
    assert time.monotonic() - start < LONG / 2
    assert result["devices"][0]["after"] == "vfio-pci"
    assert os.path.exists(card.paths.journal)
    gone.touch()


def test_the_next_run_may_ask_for_the_opposite(card, tmp_path):
    """Somebody changed his mind while the card was on its way."""
    gone = tmp_path / "gone"
    hold(card, gone)
    ask(card, timeout=0.3)
    gone.touch()
    ask(card, "default")
    assert drivers(card) == NATIVE
    assert not os.path.exists(card.paths.rules)


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from conftest import Host
from test_driver_changes import ask
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import sysfs

host = Host.__new__(Host)
host.__dict__.update(eval(sys.argv[2], {"Path": Path}))
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below
host.paths = below(str(host.root))._replace(proc="/proc")
count = [0]
def die(path, value):
    count[0] += 1
    if os.getpid() == main and path.endswith(sys.argv[3]) and value.strip() == sys.argv[4]:
        os.kill(main, 9)
main = os.getpid()
host.before_write = [die]
host.fails = {}
sysfs.put = host.put
ask(host)
"""


@pytest.mark.parametrize(
    ("word", "value"), [("driver_override", "vfio-pci"), ("drivers_probe", CARD[0]), ("drivers_probe", CARD[2])]
)
@pytest.mark.parametrize("driver", ["vfio-pci", "default"])
def test_a_killed_run_is_made_good_by_the_next(card, word, value, driver):
    """kill -9, a power cut of the controller, a lost connection: nobody may have to know what was half done."""
    state = repr(dict(root="ROOT", native=card.native)).replace("'ROOT'", f"Path({str(card.root)!r})")
    argv = [sys.executable, "-c", KILLED, os.path.dirname(__file__), state, word, value]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    assert os.path.exists(card.paths.journal)
    result, _change = ask(card, driver)
    assert "was left by an earlier run" in result["notes"][0]
    assert drivers(card) == (["vfio-pci"] * 3 if driver == "vfio-pci" else NATIVE)
    assert not os.path.exists(card.paths.journal)


def boot(card):
    """The machine starts again: the kernel gives each device its own driver, udev's rules set overrides before that."""
    rules = persistence.read(card.paths)
    for address, driver in card.native.items():
        link = card.folder(address) / "driver"
        if link.is_symlink():
            link.unlink(missing_ok=True)
        (card.folder(address) / "driver_override").write_text("(null)\n")
        card.bind(address, driver)
    if os.path.exists(card.paths.journal):
        journal = Journal(card.paths)
        journal.operations[0].boot = "another-boot"
        journal.save()
    return rules


def test_after_a_boot_the_lasting_bindings_are_made(card):
    """A driver in the kernel or in the initramfs is there before udev's rules."""
    ask(card)
    assert list(boot(card)) == CARD
    said = []
    assert pci_restore.restore(card.paths, Deadline(5), said.append)
    assert drivers(card) == ["vfio-pci"] * 3
    said.clear()
    assert pci_restore.restore(card.paths, Deadline(5), said.append)
    assert said == []


def test_a_change_that_a_boot_cut_off_begins_afresh(card, tmp_path):
    """What waited for a guest is over with that guest: the rules say how it is to be."""
    hold(card, tmp_path / "never")
    ask(card, timeout=0.3)
    (tmp_path / "never").touch()
    card.fails.clear()
    boot(card)
    said = []
    assert pci_restore.restore(card.paths, Deadline(5), said.append)
    assert "this boot began afresh" in said[0]
    assert drivers(card) == ["vfio-pci"] * 3
    assert not os.path.exists(card.paths.journal)


def test_another_card_at_the_address_is_left_alone(card):
    """After a card was moved, the address is another's: a display, or the disk controller."""
    ask(card)
    boot(card)
    (card.folder(CARD[0]) / "device").write_text("0x2204\n")
    said = []
    assert not pci_restore.restore(card.paths, Deadline(5), said.append)
    assert said[0] == "0000:01:00.0 is 10de:2204, not 10de:11bf: left as it is"
    assert "IOMMU group 7 is not viable" in said[1]
    assert drivers(card) == NATIVE


def test_not_persistent(card):
    """For a trial, until the next boot; and a binding for good becomes one for now."""
    ask(card, persistent=False)
    assert persistence.read(card.paths) == {}
    ask(card)
    assert list(persistence.read(card.paths)) == CARD
    assert ask(card, persistent=False)[1].changed
    assert persistence.read(card.paths) == {}


def test_rules_of_udev(card):
    """By address and ids, the driver loaded; what is written is read back as it was meant."""
    ask(card, "pci-stub", ["01:00.1"])
    with open(card.paths.rules, encoding="utf-8") as file:
        rule = file.read().splitlines()[-3]
    assert rule == (
        'ACTION=="add", SUBSYSTEM=="pci", KERNEL=="0000:01:00.0", ATTR{vendor}=="0x10de", ATTR{device}=="0x11bf", '
        'ATTR{driver_override}="pci-stub", RUN{builtin}+="kmod load pci-stub"'
    )
    assert persistence.read(card.paths)["0000:01:00.0"] == ("0000:01:00.0", "10de", "11bf", "pci-stub")


def test_rules_of_somebody_else(card):
    """They would be lost with the next change."""
    os.makedirs(os.path.dirname(card.paths.rules))
    with open(card.paths.rules, "w", encoding="utf-8") as file:
        file.write('SUBSYSTEM=="pci", TAG+="mine"\n')
    with pytest.raises(HeteroError, match="line 1 was not written by pci_driver"):
        ask(card)
    assert drivers(card) == NATIVE


def test_a_device_without_any_driver_is_given_back_once(host):
    """No driver of Linux' knows it: being asked for "default" again is no change."""
    host.add("0000:04:02.0", "1234:11e8", group=9)
    ask(host, names=["04:02.0"])
    assert host.driver("0000:04:02.0") == "vfio-pci"
    assert ask(host, "default", ["04:02.0"])[1].changed
    assert host.driver("0000:04:02.0") is None
    assert not ask(host, "default", ["04:02.0"])[1].changed


def test_ids_that_the_stub_claims_for_itself(card):
    """After the blog's `echo … > new_id` a card comes back to the stub each time; the way out is named."""
    ask(card, "pci-stub")
    card.native[CARD[0]] = "pci-stub"
    with pytest.raises(StepFailed, match='write "10de 11bf" to /sys/bus/pci/drivers/pci-stub/remove_id'):
        ask(card, "default")
    assert drivers(card) == ["pci-stub"] * 3


def test_a_process_that_has_the_card_keeps_it(card):
    """The unbind would wait for it, perhaps for days."""
    node = card.folder(CARD[0]) / "drm" / "card0"
    node.mkdir(parents=True)
    (node / "dev").write_text("1:7\n")  # /dev/full
    with open("/dev/full", "rb") as full, subprocess.Popen(["sleep", "600"], stdin=full) as process:
        try:
            with pytest.raises(Refused, match=rf"a process has it open: sleep \(pid {process.pid}\)"):
                ask(card)
            assert card.writes == []
            ask(card, force=True)
        finally:
            process.kill()
    assert drivers(card) == ["vfio-pci"] * 3
