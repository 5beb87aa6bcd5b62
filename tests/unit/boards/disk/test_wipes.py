# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wiping: if these fail, a tenant reads the one before, or boards are lost to faults that are not theirs.

Tests roots/used_disks.py.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.canaries import (
    BLOCK,
    canary_blocks,
    seen_from,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipe_disk import in_words, wipe_disk
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.disk_records import proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.release import release
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_locks import locked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_work import BoardWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.used_disks import ACCEPT
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import MIB, RAM, LocalShell, lost
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import KEY

SECRET = b"a tenant's secret"
PRIVATE = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----.*?-----END", re.DOTALL)


def clean(site, number, name="sda"):
    return set(site.disk(number, name).read_bytes()) == {0}


def wiped(site, number=0, method="discard", **more):
    said = []
    shell = site.shells[number]
    return wipe_disk(shell, "/dev/sda", WipeRequest(method, **more), Deadline(600), said.append), said


def test_a_board_that_was_plugged_elsewhere_is_wiped_and_off_again(disks):
    """Lost: a board left on in its RAM system, by the very guard that keeps outlets from being switched by mistake."""
    disks.use(0)
    disks.config["boards"]["0"]["outlet"] = "8"
    disks.write()
    result = disks.wipe(0)
    assert not result["failed"], result
    assert clean(disks, 0)
    assert disks.power(0) == "off"
    with disks.proxy() as proxy:
        assert proxy.store.kept(0).fed.outlet == "8", "it came up by that one"


def test_canaries_lie_where_traces_would():
    """Partition tables and superblocks lie at both ends; offsets that were known before could be left out by a disk."""
    blocks = canary_blocks(1000 * MIB)
    edge = MIB // BLOCK
    assert {0, 1000 * edge - 1} < set(blocks)
    assert sum(block < edge for block in blocks) == sum(block >= 999 * edge for block in blocks) == 4
    assert len(blocks) == 72
    assert blocks != canary_blocks(1000 * MIB)
    assert len(canary_blocks(1000 * MIB, 1000)) == 1008
    assert len(canary_blocks(3 * MIB, 700)) == 708, "as many on a small disk, wherever they find room"
    assert len(canary_blocks(8 * BLOCK)) == 8


@pytest.mark.parametrize(("samples", "part"), [(16, 0.171), (64, 0.0458), (1000, 0.00300)])
def test_what_a_sample_is_worth(disks, samples, part):
    """An operator who reads "proven" and is not told that a rest of some percent is likely to escape."""
    chance = random.Random(samples)
    size = 1000 * MIB
    rest = seen_from(size, samples)
    assert rest / size == pytest.approx(part, rel=0.01)
    # Tried out: a rest of that size at a random place is hit as often as is said.
    hits = 0
    for _time in range(400):
        start = chance.randrange(0, size - rest)
        hits += any(start <= block * BLOCK < start + rest for block in canary_blocks(size, samples, chance))
    assert hits / 400 > 0.91
    record, _said = wiped(disks, samples=samples)
    assert f"({part * 100:.1f} %) or more would be seen with 95 %" in in_words(record)


def test_discard(disks):
    """The quick way, proven, on a disk that does what it says."""
    record, said = wiped(disks)
    assert clean(disks, 0)
    assert (record["method"], record["proven"], record["bytes"]) == ("discard", True, 5400576)
    assert record["passes"] == [dict(method="discard", done=True, canaries=72, gone=72)]
    assert said == []


def test_all_of_it_read_back(disks):
    """Lost: a piece of a tenant's data, between the blocks that a sample looks at."""
    disks.shells[0].program("blkdiscard", "dd if=/dev/zero of=$1 bs=512 count=9000 conv=notrunc status=none")
    record, said = wiped(disks, verify="full", samples=1)
    assert (record["method"], record["verify"], record["seen_from"]) == ("zero", "full", 1)
    assert clean(disks, 0)
    assert "/dev/sda: read back, 100 % of 5 MB" in said
    assert in_words(record) == "/dev/sda: 5 MB by zero, all read back as zeroes"


def test_what_is_left_in_one_place(disks):
    """Lost: the same, on a disk that does not take zeroes in one place."""
    disks.shells[0].program(
        "dd",
        """case "$*" in
*if=/dev/zero*of=*/sda*) /usr/bin/dd "$@"; printf x | /usr/bin/dd of=$HOLE bs=1 seek=2500000 conv=notrunc status=none ;;
*) exec /usr/bin/dd "$@" ;;
esac""".replace("$HOLE", str(disks.disk(0))),
    )
    with pytest.raises(HeteroError, match="something from 0 MB on is still there, or cannot be read after zero"):
        wiped(disks, method="zero", verify="full", samples=1)


def test_full_is_refused_where_it_says_nothing(disks):
    """Lost: hours, for a proof that noise after a secure erase cannot give; or a board, for a program it has not."""
    with pytest.raises(BadInput, match="what a secure erase leaves is the disk's own choice"):
        wiped(disks, method="secure_erase", verify="full")
    disks.shells[0].program("cmp", "exit 2")
    with pytest.raises(BadInput, match="cmp knows no -n"):
        wiped(disks, verify="full")
    assert SECRET in disks.disk(0).read_bytes()


@pytest.mark.parametrize(("how", "why"), [("ignore", "ignores discard"), ("unsupported", "cannot discard")])
def test_a_disk_that_does_not_discard_is_overwritten(disks, how, why):
    """A disk that says it did and did not hands the secret on."""
    disks.discards(0, how)
    record, said = wiped(disks)
    assert clean(disks, 0)
    assert (record["method"], record["proven"]) == ("zero", True)
    assert [one["method"] for one in record["passes"]] == ["discard", "zero"]
    assert record["passes"][0]["gone"] == 0
    assert why in said[0]


def test_zero_reaches_the_last_byte(disks):
    """A size that is no multiple of a megabyte would leave its tail."""
    with disks.disk(0).open("ab") as file:
        file.write(SECRET * 1000 + b"x" * (512 - len(SECRET) * 1000 % 512))
    size = disks.disk(0).stat().st_size // 512 * 512
    with disks.disk(0).open("r+b") as file:
        file.truncate(size)
    record, said = wiped(disks, method="zero")
    assert clean(disks, 0)
    assert record["bytes"] == size
    assert said[-1].startswith("/dev/sda: zeroes, 100 %")


def test_a_disk_that_keeps_its_canaries_is_no_use(disks):
    """Zeroes that do not arrive must not count as a wipe."""
    program = disks.folder / "board0" / "bin" / "dd"
    program.write_text('#!/bin/sh\ncase "$*" in *if=/dev/zero*of=*/sda*) exit 0 ;; esac\nexec /usr/bin/dd "$@"\n')
    program.chmod(0o755)
    with pytest.raises(HeteroError, match="72 of 72 blocks are still there after zero"):
        wiped(disks, method="zero")


def test_a_disk_that_loses_what_is_written_proves_nothing(disks):
    """Canaries that never were there would be gone afterwards, and the data would not."""
    program = disks.folder / "board0" / "bin" / "dd"
    program.write_text('#!/bin/sh\ncase "$*" in *oflag=direct*) exit 0 ;; esac\nexec /usr/bin/dd "$@"\n')
    program.chmod(0o755)
    with pytest.raises(HeteroError, match="72 of 72 blocks do not keep what is written"):
        wiped(disks)


def test_secure_erase_is_honest(disks):
    """A method that the disk does not have, quietly done in another way, would be a lie in the record."""
    with pytest.raises(BadInput, match="board0 /dev/sda: secure erase is not supported: ") as error:
        wiped(disks, method="secure_erase")
    assert error.value.remedy == "use method discard or zero (-e wipe=zero)"
    assert SECRET in disks.disk(0).read_bytes()


def test_only_a_wiped_board_is_free(disks):
    """The board with the last tenant's data would be the next one's."""
    disks.use(0)
    assert "not proven to be wiped" in disks.release(0)["msg"]
    result = disks.wipe(0)
    assert (result["changed"], result["failed"]) == (True, False)
    assert clean(disks, 0)
    record = disks.record(0)
    assert (record.state, record.note, record.power) == ("shutting down", "wiped, proven", "off")
    assert not disks.entry(0).parent.exists()
    assert not disks.release(0).get("failed")
    assert disks.record(0).state == "power off"
    kept = list((disks.folder / "state" / "wipes" / "history").iterdir())
    assert [json.loads(path.read_text())["disks"][0]["method"] for path in kept] == ["discard"]


@pytest.fixture
def served(disks, monkeypatch):
    """What lies there for boards to fetch each time that board 0 is switched on."""
    found, switched = [], Fake.switched

    def look(self, board, state):
        if state == "on":
            found.append({path.name: path.read_bytes() for path in disks.entry(0).parent.iterdir()})
        switched(self, board, state)

    disks.use(0)
    monkeypatch.setattr(Fake, "switched", look)
    return found


def test_the_ram_system_is_private(disks, served):
    """Who knows its key, or its host key of another boot, could act as the proxy on a board."""
    folder = disks.entry(0).parent
    disks.shells[0].fail = lambda text: [pytest.fail("served on") for path in folder.glob("initrd_0")]
    disks.wipe(0)
    own = disks.folder / "state" / "ram" / "id_ed25519"
    initrd = served[0]["initrd_0"]
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert b"root=/dev/ram0" in served[0][disks.entry(0).name]
    assert b"ssh_host_ed25519_key" in initrd
    assert initrd.endswith(b"ram initrd")
    assert len(initrd[: -len(b"ram initrd")]) % 512 == 0
    assert own.read_bytes().splitlines()[-3] not in initrd


def test_each_try_has_keys_of_its_own(disks, served, patient):
    """Lost: the proof of a wipe, to who kept the board from its first boot, and has that one's key in the second."""
    patient(lambda boot: boot.tries < 2)
    disks.play(0, stall="tftp", stalls=2)
    assert disks.wipe(0, timeout=2)["failed"] is False
    first, second = (PRIVATE.search(one["initrd_0"])[0] for one in served)
    assert first != second


@pytest.mark.parametrize("name", ["initrd_0", "?"])
def test_a_key_that_somebody_else_has_proves_nothing(disks, name):
    """Lost: what the tenant wrote, to the next one: another machine answers, with the board's key, and says "wiped"."""
    disks.use(0)
    disks.play(0, thief=[name])
    result = disks.wipe(0)
    assert result["failed"]
    assert "the host key of its RAM system was asked for 2 times (10.0.2.1 boot 2, somebody else)" in result["msg"]
    assert disks.shells[0].ran == []
    record = disks.record(0)
    assert (record.state, record.power, record.note[:13]) == ("shutting down", "off", "not wiped yet")
    assert "not proven to be wiped" in disks.release(0)["msg"]


class Console:
    """Board 0 has a console, and its RAM system says there what it is told to when it is switched on."""

    def __init__(self, site, monkeypatch, served):
        self.log = site.folder / "console"
        self.log.write_text("login: hetero-ram-key\n")
        site.config["boards"]["0"]["console"] = str(self.log)
        image = site.folder / "state" / "images" / RAM / "image.json"
        image.write_text('{"arch": "tilepro64", "ram": true, "console_key": true}')
        site.write()
        self.says = lambda word: ""
        switched = Fake.switched

        def look(fake, board, state):
            switched(fake, board, state)
            if state == "on":
                word = re.search(rb"hetero_ram_word\0+([0-9a-f]{32})\n", served[-1]["initrd_0"])[1].decode()
                with self.log.open("a") as file:
                    file.write(self.says(word))

        monkeypatch.setattr(Fake, "switched", look)
        self.keys = []

        def answers(fake, board, system, deadline, cancelled, report):
            if not system.console_key:
                return False
            self.keys.append(system.console_key.wait(deadline.within(0.5), cancelled))
            return self.keys[-1] is not None

        monkeypatch.setattr(Fake, "answers", answers)


KEY_SAID = f"ssh-ed25519 {'A' * 67}/"


def test_a_key_said_on_the_console(disks, served, monkeypatch):
    """Lost: the proof of a wipe, to whoever reads what TFTP hands out; there is nothing secret in it."""
    console = Console(disks, monkeypatch, served)
    console.says = lambda word: f"[1.2] x\r\nhetero-ram-key {word} {KEY_SAID}\r\nhetero-ram-key {word} {KEY_SAID}\r\n"
    result = disks.wipe(0)
    assert not result["failed"], result["msg"]
    assert console.keys == [KEY_SAID]
    assert b"PRIVATE KEY" not in served[0]["initrd_0"]
    proof = result["boards"][0]["proof"]
    assert proof["key"] == "said on its console"
    assert next(line["text"] for line in result["lines"] if line["phase"] == "ram").endswith("said on its console")


@pytest.mark.parametrize("time", ["2026-11-21T04:23:22.426+00:00 ", "[Sat Nov 21 04:23:22 2026]", "Nov 21 04:23:22 "])
def test_a_log_with_times(disks, served, monkeypatch, time):
    """Lost: every board whose console's log is written by something that puts the time before each line."""
    console = Console(disks, monkeypatch, served)
    console.says = lambda word: f"{time}hetero-ram-key {word} {KEY_SAID}\n" * 2
    assert not disks.wipe(0)["failed"]


@pytest.mark.parametrize(
    "says",
    [
        lambda word: f"hetero-ram-key {word} {KEY_SAID}\n",  # once: a line may be mangled
        lambda word: f"hetero-ram-key {'0' * 32} {KEY_SAID}\n" * 2,  # of another boot
        lambda word: f"[9] Nov 21 04:23:22 user 'hetero-ram-key {word} {KEY_SAID} '\n" * 2,  # a stranger's name
        lambda word: f"hetero-ram-key {word} {KEY_SAID[:-1]}\n" * 2,
    ],
)
def test_what_is_no_key_of_this_boot(disks, served, monkeypatch, says):
    """Lost: the proof of a wipe, to who can have something logged on a console."""
    console = Console(disks, monkeypatch, served)
    console.says = says
    result = disks.wipe(0, timeout=1)
    assert result["failed"]
    assert console.keys == [None]
    assert f"no host key was said in {console.log}: look who writes it" in result["msg"]


def test_a_console_that_is_asked_for_must_be_there(disks):
    """Lost: the stronger proof, quietly, by a line of the inventory that was taken out."""
    disks.use(0)
    disks.config["boards"]["0"]["ram_key"] = "console"
    disks.write()
    assert "ram_key is console, and RAM image ram does not say its key" in disks.wipe(0)["msg"]


def test_a_second_wipe_finds_nothing_to_do(disks):
    """A rerun of terminate would boot each board once more."""
    disks.use(0)
    disks.wipe(0)
    ran = len(disks.shells[0].ran)
    result = disks.wipe(0)
    assert (result["changed"], len(disks.shells[0].ran)) == (False, ran)
    assert result["boards"][0]["proof"]["disks"][0]["proven"] is True


def test_the_proof_goes_with_the_next_tenant(disks):
    """A proof from before the last tenant would free a board that nobody wiped."""
    disks.use(0)
    disks.wipe(0)
    disks.release(0)
    disks.use(0)
    assert "not proven to be wiped" in disks.release(0)["msg"]


def forget(disks):
    """Nobody claims a board any more by any record, as after our remedy for a lost database."""
    for path in disks.folder.rglob("state.db*"):
        path.unlink()
    shutil.rmtree(disks.folder / "state" / "claims")


def mend(disks, check=False):
    with disks.proxy() as proxy:
        result = reconcile(proxy, [0], Change(check), 20)
        return result["changed"], [(entry["found"], entry["done"]) for entry in result["boards"][0]["found"]]


USED = "disk /dev/sda was used by {}, and is not proven to be wiped since"
WAY = (
    "nothing of it is touched: put a newer backup of the database back; or, once nobody wants it, "
    "ansible-playbook hetero.compute.repair -e node=board0"
)


@pytest.mark.parametrize("lost", ["all but the disk", "all but what lies beside"])
def test_a_used_disk_is_kept_and_given_to_nobody_although_nobody_knows_of_a_claim(disks, lost):
    """Lost: what a tenant wrote, to the next one or to whoever tidies up: database and records are gone."""
    disks.use(0)
    if lost == "all but the disk":
        disks.remove(0)
    forget(disks)
    with pytest.raises(HeteroError, match=USED.format("vm0")):
        claim(disks)
    for check in (True, False):
        changed, ((text, done),) = mend(disks, check)
        assert (changed, done) == (False, None)
        assert text.startswith(f"{USED.format('vm0')}, and no claim is known: {WAY}")
    assert SECRET in disks.disk(0).read_bytes()
    # Repair, an operator's word.
    disks.remove(0)
    assert not disks.wipe(0, inspect=True)["failed"]
    with disks.proxy() as proxy:
        assert not board_releases.make_free(proxy, proxy.board(0), Change(), Deadline(60)).get("failed")
    assert clean(disks, 0)
    assert [board["board"] for board in claim(disks)["boards"]] == [0]


def claim(disks, number=0, check=False):
    """What a board is asked for with, as board_claim does it."""
    flavor = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}
    with disks.proxy() as proxy:
        return present(proxy, ClaimRequest("carol", "carol", flavor, "demo", KEY, board=number), Change(check))


def test_a_disk_that_nobody_named_until_a_tenant_had_it(disks):
    """Lost: what a tenant wrote to a disk whose name came into the wiring only afterwards."""
    named = disks.config["boards"]["0"].pop("disk")
    disks.write()
    disks.use(0)
    disks.remove(0)
    assert not disks.release(0).get("failed")
    disks.config["boards"]["0"]["disk"] = named
    disks.write()
    with pytest.raises(HeteroError, match=USED.format("vm0")):
        claim(disks)


def test_a_used_disk_that_is_not_named_any_more_frees_nobody(disks):
    """Lost: a tenant's disk, read by the next one, by a line that fell out of the inventory before it was wiped."""
    disks.use(0)
    disks.remove(0)
    wiring = disks.config["boards"]["0"]
    named = wiring.pop("disk")
    disks.write()
    for result in (disks.wipe(0), disks.release(0)):
        assert "disk /dev/sda was used by vm0, and is not named any more: name it in tftp_proxy_boards" in result["msg"]
    wiring["disk"] = named
    disks.write()
    assert not disks.wipe(0)["failed"]
    assert not disks.release(0).get("failed")
    # One that was taken out: an operator says so.
    disks.use(0)
    disks.remove(0)
    del wiring["disk"]
    wiring[ACCEPT] = ["sda"]
    disks.write()
    assert not disks.release(0).get("failed")


def test_a_used_disk_goes_with_its_board_and_not_with_its_number(disks):
    """Lost: a tenant's disk, read by the next one: two boards have swapped their ids while the used one was off."""
    disks.use(0)
    disks.remove(0)
    path = disks.folder / "tilera_boards"
    rows = {int(row.split()[0]): row.split(maxsplit=1)[1] for row in path.read_text().splitlines()}
    rows[0], rows[1] = rows[1], rows[0]
    path.write_text("".join(f"{number} {row}\n" for number, row in rows.items()))
    boards = disks.config["boards"]
    boards["0"], boards["1"] = boards["1"], boards["0"]
    disks.write()
    with pytest.raises(HeteroError, match=USED.format("vm0")):
        claim(disks, 1)


def test_records_of_wipes_lie_in_a_folder_of_roots_alone(disks):
    disks.use(0)
    disks.wipe(0)
    for folder in ("wipes", "wipes/history"):
        assert (disks.folder / "state" / folder).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", ["accepted", "not seen"])
def test_a_disk_that_was_named_after_the_wipe_of_another(disks, how):
    """Lost: what a tenant wrote to a disk that came into the wiring after the wipe of the others."""
    wiring = disks.config["boards"]["1"]
    wiring["disk"] = ["/dev/sda"]
    if how == "accepted":
        wiring[ACCEPT] = ["sdb"]
    else:
        shutil.rmtree(disks.shells[1].folder / "sys" / "block" / "sdb")  # its controller's driver was missing
    disks.write()
    disks.use(1)
    assert not disks.wipe(1)["failed"]
    disks.remove(1)
    assert not disks.release(1).get("failed")
    assert claim(disks, 1, check=True)["boards"]
    wiring["disk"] = ["/dev/sda", "/dev/sdb"]
    disks.write()
    assert SECRET in disks.disk(1, "sdb").read_bytes()
    with pytest.raises(HeteroError, match="/dev/sdb not proven to be wiped since it was used last"):
        claim(disks, 1)


@pytest.mark.parametrize("text", ["{", "[]", '{"disks": [7]}', '{"disks": [{"device": "/dev/sda"}]}', "[" * 10**5])
def test_a_proof_that_cannot_be_read_proves_nothing(disks, text):
    """Lost: all verbs on a board, or a disk's data, by one file on a bad sector."""
    disks.use(0)
    disks.wipe(0)
    disks.release(0)
    with disks.proxy() as proxy:
        mac = proxy.board(0).mac.replace(":", "-")
    (disks.folder / "state" / "wipes" / f"{mac}.json").write_text(text)
    with pytest.raises(HeteroError, match=r"was used by somebody \(what is known of it cannot be read\)"):
        claim(disks)
    assert not disks.wipe(0)["failed"]


def test_a_disk_that_no_tenant_ever_had_is_no_reason(disks):
    """Lost: a new board, which would boot into RAM for hours before anybody gets it."""
    assert [board["board"] for board in claim(disks)["boards"]] == [0]
    assert mend(disks) == (False, [("claimed for carol, not made ready yet", None)])


def test_a_new_disk_needs_a_proof_of_its_own(disks):
    """A disk that was put in after the wipe was never wiped."""
    disks.use(0)
    disks.wipe(0)
    disks.config["boards"]["0"]["disk"].append("/dev/sdb")
    disks.write()
    assert "not proven to be wiped" in disks.release(0)["msg"]


def test_without_verify_it_frees_nobody(disks):
    """Somebody in a hurry would leave the next tenant what was not looked at."""
    disks.use(0)
    assert disks.wipe(0, verify="none")["boards"][0]["disks"][0]["proven"] is False
    assert "not proven to be wiped" in disks.release(0)["msg"]


def test_all_disks_of_all_boards(disks):
    """A second disk that is left out keeps its secret."""
    disks.use(0, 1)
    result = disks.wipe(0, 1, 2)
    assert [clean(disks, 0), clean(disks, 1), clean(disks, 1, "sdb")] == [True] * 3
    assert [len(board["disks"]) for board in result["boards"]] == [1, 2, 0]
    assert result["boards"][2]["changed"] is False


def test_power_cut_in_the_middle(disks):
    """A board that went away during its wipe must neither be free nor be thrown out, and the rerun has to get there."""
    disks.use(0)
    disks.shells[0].fail = lost("blkdiscard")
    result = disks.wipe(0)
    assert result["failed"]
    assert "connection to it is lost" in result["msg"]
    record = disks.record(0)
    assert (record.state, record.note[:13]) == ("shutting down", "not wiped yet")
    assert "not proven to be wiped" in disks.release(0)["msg"]
    assert disks.wipe(0)["failed"] is False
    assert clean(disks, 0)
    assert not disks.release(0).get("failed")


def test_a_broken_disk_costs_its_board(disks):
    """The next tenant would get a board whose disk nobody can wipe."""
    disks.use(0, 1)
    disks.discards(0, "broken")
    result = disks.wipe(0, 1)
    first, second = result["boards"]
    assert (first["state"], first["blame"], second["state"]) == ("error", "board", "shutting down")
    assert "Input/output error" in disks.record(0).note
    assert disks.power(0) == "off"


@pytest.mark.parametrize(("stall", "state"), [("nfs", "shutting down"), ("tftp", "error")])
def test_whose_fault_a_ram_boot_is(disks, stall, state):
    """A RAM image that does not boot would put board after board out of use."""
    disks.use(0)
    disks.play(0, stall=stall)
    result = disks.wipe(0, timeout=2)
    assert (result["failed"], disks.record(0).state) == (True, state)
    assert result["boards"][0]["blame"] == ("proxy" if stall == "nfs" else "board")
    # what did not boot is not an instance's image
    assert ("RAM image ram does not boot" in result["msg"]) == (stall == "nfs")
    assert "not proven to be wiped" in disks.release(0)["msg"]


def test_no_ram_image(disks):
    """Who forgot it has to learn where it is named."""
    disks.use(0)
    disks.config["ram_images"] = {}
    disks.write()
    result = disks.wipe(0)
    assert "no RAM image is configured for architecture TILEPro64: name one in tftp_proxy_ram_images" in result["msg"]
    assert disks.record(0).state == "shutting down"


def test_a_board_in_use_is_not_touched(disks):
    """A slip of the pen would destroy a running instance, or one that is only stopped."""
    disks.claim(0)
    disks.run("start", 0)
    assert "is running: stop it first" in disks.wipe(0)["msg"]
    disks.ask(1)
    assert "is made ready for vm1" in disks.wipe(1)["msg"]
    assert SECRET in disks.disk(0).read_bytes()
    assert SECRET in disks.disk(1).read_bytes()


@pytest.mark.parametrize("note", ["nova", ""])
def test_a_board_in_maintenance_that_is_on_is_not_cut(disks, note):
    """Lost: the power of who is at work there, such as a tenant of Nova's; and their disk, by an operator who looks."""
    with disks.proxy() as proxy:
        proxy.store.move(0, "maintenance", note)
    disks.cut(0, "on")
    result = disks.wipe(0, inspect=True)
    assert result["failed"]
    assert f"it is in maintenance{note and ': '}{note}: nothing is switched" in result["msg"]
    assert (disks.power(0), disks.shells[0].ran, disks.record(0).state) == ("on", [], "maintenance")
    disks.cut(0, "off")
    assert not disks.wipe(0, inspect=True)["failed"]
    assert (disks.power(0), disks.record(0).state, disks.record(0).note) == ("off", "maintenance", note)


def test_dry_run(disks):
    """--check would wipe."""
    disks.use(0)
    result = disks.wipe(0, check=True)
    assert (result["changed"], result["failed"]) == (True, False)
    assert SECRET in disks.disk(0).read_bytes()
    assert disks.power(0) == "off"


def test_dry_run_after_the_dry_runs_of_stopping_and_removing(disks):
    """`terminate_instance --check` would end at a board that it would have stopped by then."""
    disks.claim(0)
    disks.run("start", 0)
    disks.ask(1)
    result = disks.wipe(0, 1, check=True)
    assert (result["changed"], result["failed"]) == (True, False)
    for line in result["lines"]:
        assert (line["phase"], line["text"][:36]) == ("wipe", "would boot into RAM and wipe /dev/sd")
        assert line["text"].endswith(", once it is off and nothing is made ready on it")
    assert (disks.record(0).state, disks.power(0)) == ("running", "on")
    assert SECRET in disks.disk(0).read_bytes()


def test_inspect_says_what_a_board_is_made_of(disks):
    """Who repairs a board wants to see its memory and disks before it is given out again."""
    found = disks.wipe(0, inspect=True)["boards"][0]["hardware"]
    assert found["memory_mb"] > 0
    assert found["cpus"] > 0
    record = disks.record(0)
    assert (record.state, record.note) == ("shutting down", "wiped, proven")


def test_how_this_site_wipes(disks):
    """Lost: the way that the site chose, when a lease ends and no play is there to say it."""
    disks.config["wipe"] = {"method": "zero", "verify": "full"}
    disks.write()
    disks.claim(0)
    disks.run("start", 0)
    with disks.proxy() as proxy:
        work = BoardWork(proxy, proxy.board(0), Change())
        with locked([work], "reap", Deadline(5)):
            release(proxy, [work], lifecycle.Options(timeout=60))
        found = proof(proxy, proxy.board(0))["disks"][0]
        assert (work.error, found["method"], found["verify"]) == (None, "zero", "full")
        with pytest.raises(BadInput, match="no such verify: some"):
            WipeRequest.of(proxy, verify="some")
        with pytest.raises(BadInput, match="samples is 0"):
            WipeRequest.of(proxy, samples=0)
        assert WipeRequest.of(proxy, verify="sample", method=None).method == "zero"


def test_whoever_gives_a_board_back_wipes_it(disks):
    """A lease that ends at night would leave its board claimed until somebody wipes it, or free with its data."""
    disks.claim(0)
    disks.run("start", 0)
    options = lifecycle.Options(timeout=60)
    with disks.proxy() as proxy:
        work = BoardWork(proxy, proxy.board(0), Change())
        with locked([work], "reap", Deadline(5)):
            release(proxy, [work], options)
    assert (work.error, disks.record(0).state, disks.record(0).claim) == (None, "power off", None)
    assert clean(disks, 0)


def test_inspect_of_a_board_without_disks(disks):
    """A board that has none could not be repaired: the look at it broke."""
    disks.shells[2] = LocalShell("board2", disks.folder / "board2")
    disks.use(2)
    found = disks.wipe(2, inspect=True)["boards"][0]
    assert (found["failed"], found["hardware"]["disks"]) == (False, [])


def test_a_wipe_by_reconcile_leaves_the_board_off_and_free(disks):
    """Lost: the board, out of use and on for good: its own RAM system, which answers, was taken for somebody's."""
    with disks.proxy() as proxy:
        proxy.store.move(0, "error", "a fan")
        proxy.store.move(0, "shutting down")
        found = reconcile(proxy, [0], Change(), 20)["boards"][0]["found"]
        assert [one["done"] for one in found] == ["off, cleaned, free"], found
        assert proof(proxy, proxy.board(0)) is not None
    assert (disks.record(0).state, disks.power(0)) == ("power off", "off")
