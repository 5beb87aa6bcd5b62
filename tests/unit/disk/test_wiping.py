# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wiping: if these fail, a tenant reads the one before, or boards are lost to faults that are not theirs."""

from __future__ import annotations

import json
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.boards import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils.boards.board_work import BoardWork, locked
from ansible_collections.hetero.compute.plugins.module_utils.boards.release import release
from ansible_collections.hetero.compute.plugins.module_utils.boards.wipe_disk import (
    BLOCK,
    canary_blocks,
    wipe_disk,
)
from ansible_collections.hetero.compute.plugins.module_utils.change import Change
from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.tests.unit.disk.conftest import MIB, lost

SECRET = b"a tenant's secret"


def clean(site, number, name="sda"):
    return set(site.disk(number, name).read_bytes()) == {0}


def wiped(site, number=0, method="discard", **more):
    said = []
    shell = site.shells[number]
    return wipe_disk(shell, "/dev/sda", method, more.get("verify", True), Deadline(60), said.append), said


def test_canaries_lie_where_traces_would():
    """Partition tables and superblocks lie at both ends; offsets that were known before could be left out by a disk."""
    blocks = canary_blocks(1000 * MIB)
    edge = MIB // BLOCK
    assert {0, 1000 * edge - 1} < set(blocks)
    assert sum(block < edge for block in blocks) == sum(block >= 999 * edge for block in blocks) == 4
    assert len(blocks) == 24
    assert blocks != canary_blocks(1000 * MIB)


def test_discard(disks):
    """The quick way, proven, on a disk that does what it says."""
    record, said = wiped(disks)
    assert clean(disks, 0)
    assert (record["method"], record["proven"], record["bytes"]) == ("discard", True, 5400576)
    assert record["passes"] == [dict(method="discard", done=True, canaries=24, gone=24)]
    assert said == []


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
    with pytest.raises(HeteroError, match="24 of 24 blocks are still there after zero"):
        wiped(disks, method="zero")


def test_a_disk_that_loses_what_is_written_proves_nothing(disks):
    """Canaries that never were there would be gone afterwards, and the data would not."""
    program = disks.folder / "board0" / "bin" / "dd"
    program.write_text('#!/bin/sh\ncase "$*" in *oflag=direct*) exit 0 ;; esac\nexec /usr/bin/dd "$@"\n')
    program.chmod(0o755)
    with pytest.raises(HeteroError, match="24 of 24 blocks do not keep what is written"):
        wiped(disks)


def test_secure_erase_is_honest(disks):
    """A method that the disk does not have, quietly done in another way, would be a lie in the record."""
    with pytest.raises(BadInput, match="board0 /dev/sda: secure erase is not supported: ") as error:
        wiped(disks, method="secure_erase")
    assert error.value.remedy == "use method discard or zero"
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


def test_the_ram_system_is_private(disks):
    """Who knows its key, or its host key of another boot, could act as the proxy on a board."""
    served = []

    def look(text):
        if not served:
            served.append((disks.entry(0).parent / "initrd_0").read_bytes())
            assert "root=/dev/ram0" in disks.entry(0).read_text()

    disks.use(0)
    disks.shells[0].fail = look
    disks.wipe(0)
    own = disks.folder / "state" / "ram" / "id_ed25519"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert b"ssh_host_ed25519_key" in served[0]
    assert served[0].endswith(b"ram initrd")
    assert len(served[0][: -len(b"ram initrd")]) % 512 == 0
    assert own.read_bytes().splitlines()[-3] not in served[0]


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
    assert disks.wipe(0, verify=False)["boards"][0]["disks"][0]["proven"] is False
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


def test_dry_run(disks):
    """--check would wipe."""
    disks.use(0)
    result = disks.wipe(0, check=True)
    assert (result["changed"], result["failed"]) == (True, False)
    assert SECRET in disks.disk(0).read_bytes()
    assert disks.power(0) == "off"


def test_inspect_says_what_a_board_is_made_of(disks):
    """Who repairs a board wants to see its memory and disks before it is given out again."""
    found = disks.wipe(0, inspect=True)["boards"][0]["hardware"]
    assert found["memory_mb"] > 0
    assert found["cpus"] > 0
    record = disks.record(0)
    assert (record.state, record.note) == ("shutting down", "wiped, proven")


def test_whoever_gives_a_board_back_wipes_it(disks):
    """A lease that ends at night would leave its board claimed until somebody wipes it, or free with its data."""
    disks.claim(0)
    disks.run("start", 0)
    options = lifecycle.Options(timeout=2)
    with disks.proxy() as proxy:
        work = BoardWork(proxy, proxy.board(0), Change())
        with locked([work], "reap", Deadline(5)):
            release(proxy, [work], options)
    assert (work.error, disks.record(0).state, disks.record(0).claim) == (None, "power off", None)
    assert clean(disks, 0)
