# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot source disk: if these fail, a board boots another's root, or none, or a tenant's data is unpacked over."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_claims, board_fit
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ram import ram_image
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import PROGRAMS, RAM, LocalShell, lost
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import IMAGE, KEY

SHOWN = ("image", "power", "tftp", "ram", "upload", "unpack", "running", "error")


def told(site, number=0):
    """Phases in their order, each run of one once."""
    phases = [event.phase for event in site.events(number, SHOWN)]
    return [phase for phase, before in zip(phases, [None, *phases]) if phase != before]


def data(site, number=0):
    return site.root(number) / "data"


def test_two_phases(disks, monkeypatch):
    """The whole way: RAM, archive to the disk, verified; then its own root."""
    monkeypatch.setattr(disk_boot, "TELL", 0.0)
    made = disks.ask(0)
    assert made["boards"][0]["restored"] == ["archive", "root", "vmlinux_0", "initrd_0"]
    begun = time.monotonic()
    result = disks.run("start", 0)
    assert (result.get("msg"), disks.record(0).state) == (None, "running")
    assert all(0 <= (line["seconds"] or 0) <= time.monotonic() - begun for line in result["lines"])
    assert any(re.fullmatch(r"(\d+) of \1 MB \(100 %\)", event.text) for event in disks.events(0, ["upload"]))
    assert told(disks) == ["image", "power", "tftp", "ram", "upload", "unpack", "power", "tftp", "running"]
    entry = disks.entry(0).read_text()
    assert "root=/dev/sda1 " in entry
    assert "nfs" not in entry
    assert (disks.entry(0).parent / "initrd_0").read_text() == "initrd"
    root = disks.root()
    assert (root / "etc" / "hostname").read_text() == "vm0\n"
    assert KEY in (root / "root" / ".ssh" / "authorized_keys").read_text().splitlines()
    assert "hetero: reboot only" in (root / "root" / ".ssh" / "authorized_keys").read_text()
    assert not (root / "etc" / "ssh" / "ssh_host_rsa_key").exists()
    claim = disks.record(0).claim
    assert (root / "etc" / "ssh" / "ssh_host_ed25519_key.pub").read_text().startswith(claim.host_key)
    assert (claim.boot_source, (root / "etc" / "file 7").read_text()) == ("disk", "7\n" * 100)


def test_each_phase_boots_the_kernel_that_looks_for_its_root(disks):
    """The blueprint's vmlinux_N_1 and vmlinux_N_2: a board that gets no arguments would look for its root elsewhere."""
    images, kernel = disks.folder / "state" / "images", disks.folder / "tftpboot" / "10.0.2.1" / "vmlinux_0"
    for image, names in ((RAM, ("0.ram", "1")), (IMAGE, ("0.disk", "0.nfs", "1"))):
        (images / image / "kernel.d").mkdir()
        for name in names:
            (images / image / "kernel.d" / name).write_text(f"{'RAM' if image == RAM else 'IMAGE'} {name}")
    seen = []
    disks.ask(0)
    disks.shells[0].fail = lambda text: seen.append(kernel.read_text())
    assert not disks.run("start", 0)["failed"]
    assert (set(seen), kernel.read_text()) == ({"RAM 0.ram"}, "IMAGE 0.disk")
    with disks.proxy() as proxy:
        (images / RAM / "kernel").unlink()
        with pytest.raises(BadInput, match=r"RAM image \S+: has no kernel for board2: give it kernel, or kernel.d/2"):
            ram_image(proxy, proxy.board(2))


def test_who_waits_for_it_waits_as_long_as_its_steps_may_take():
    """A slow disk's boot would be given up in the middle of its unpacking, with a root that is half there."""
    steps = (disk_boot.FORMAT_TIME, disk_boot.UPLOAD_TIME, disk_boot.UNPACK_TIME)
    limit = lifecycle.Options(timeout=60).limit_with_disk
    assert limit > sum(steps) + disk_boot.FORMAT_TIME + 2 * 60
    # and a board that hangs in it is told of in the morning that it was asked for
    assert limit < 4 * 3600


def test_a_full_folder_of_archives_is_said_to_be_full(disks):
    """Lost: why: tar's last line says only that it ends."""
    (disks.folder / "state" / "images" / IMAGE / "root" / "large").write_bytes(os.urandom(1 << 20))
    archives = disks.folder / "state" / "archives"
    archives.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(archives)], check=True)
    try:
        message = disks.ask(0)["msg"]
    finally:
        subprocess.run(["umount", str(archives)], check=True)
    assert "tar ended with 2 and said: " in message
    assert "No space left on device: check the space there" in message


def test_second_run_changes_nothing(disks):
    """A rerun of a finished play would reboot the board, or unpack over its data."""
    disks.ask(0)
    disks.run("start", 0)
    assert disks.ready(0)["changed"] is False
    assert disks.run("start", 0)["changed"] is False


def test_reboot_keeps_data(disks):
    """What a tenant wrote must be there after a reboot, and after the board was found off."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    disks.run("reboot", 0)
    disks.cut(0)
    disks.run("start", 0)
    assert (data(disks).read_text(), disks.shells[0].puts.count("root.tar.gz")) == ("kept", 1)


@pytest.mark.parametrize(
    "where", ["ext4 -o ro", "mkfs.ext4", "own.tar", "root.tar.gz", "tar -C", "sha256sum -c 2>&1"], ids=str.split
)
def test_it_goes_on_after_a_power_cut(disks, where):
    """A board that went away at any step of phase 1 would have to be looked after by hand."""
    disks.ask(0)
    disks.shells[0].fail = lost(where)
    result = disks.run("start", 0)
    assert (result["failed"], result["blame"], disks.record(0).state) == (True, None, "booting")
    assert "run this again" in result["msg"]
    disks.ready(0)
    assert disks.run("start", 0)["failed"] is False
    assert (disks.root() / "etc" / "hostname").read_text() == "vm0\n"


def test_what_is_on_the_disk_beats_the_record(disks):
    """A play killed after the last step unpacks nothing anew; its tenant may have been there meanwhile."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    made = disks.folder / "state" / "disks" / "fs_0" / "made.json"
    text = made.read_text()
    made.write_text(text[: text.index('"unpacked"')] + '"unpacked": null, "sure": false}')
    disks.run("stop", 0)
    assert disks.run("start", 0)["failed"] is False
    assert (data(disks).read_text(), disks.shells[0].puts.count("root.tar.gz")) == ("kept", 1)


def test_phase_2_that_fails_is_looked_into(disks):
    """A root that does not come up may not be there any more; one that is there is not unpacked over."""
    disks.ask(0)
    disks.run("start", 0)
    disks.run("stop", 0)
    disks.play(0, stall="nfs")
    result = disks.run("start", 0, timeout=2)
    assert "stalled at running" in result["msg"]
    assert (result["blame"], disks.power(0)) == ("instance", "on")
    disks.play(0)
    disks.run("stop", 0)
    disks.run("start", 0)
    assert (disks.record(0).state, disks.shells[0].puts.count("root.tar.gz")) == ("running", 1)


def test_a_disk_that_cannot_be_mounted_any_more_is_not_formatted(disks):
    """Lost: all that a tenant has, to a file system that wants fsck, or that the RAM system does not know."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    disks.run("stop", 0)
    disks.play(0, stall="nfs")
    disks.run("start", 0, timeout=2)
    disks.play(0)
    disks.run("stop", 0)
    kept = disks.root().rename(disks.root().with_name("not to be mounted"))
    result = disks.run("start", 0)
    assert "cannot be mounted now, or is another disk: nothing is touched: look at the disk" in result["msg"]
    assert (kept / data(disks).relative_to(disks.root())).read_text() == "kept"
    assert not disks.root().exists()


IO_ERROR = "echo 'Input/output error' >&2; exit 5"


@pytest.mark.parametrize("fault", [dict(mount=IO_ERROR), dict(cat=IO_ERROR)], ids="".join)
def test_a_fault_of_a_moment_costs_no_disk(disks, fault):
    """Lost: all that a tenant has, to a loose cable: the one way that was printed was a rebuild."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    disks.run("stop", 0, keep=True)
    made = json.loads(made_of(disks).read_text())
    made_of(disks).write_text(json.dumps(dict(made, sure=False)))
    shell = disks.shells[0]
    for name, text in fault.items():
        shell.program(name, text)
    for _try in range(2):
        message = disks.run("start", 0)["msg"]
        assert "(Input/output error): nothing is touched: look at the disk and its cable, then" in message
        assert "hetero.compute.start_instance -e instance=vm0; only once its tenant gives up what is on it" in message
        assert "hetero.compute.rebuild_instance -e instance=vm0 -e fresh=true" in message
        record = disks.record(0)
        assert (record.state, record.power, disks.power(0)) == ("power off", "off", "off")
        assert "/dev/sda1 was vm0's, and" in record.note
    for name in fault:
        (shell.folder / "bin" / name).unlink()
    shell.program("mount", PROGRAMS["mount"])
    assert not disks.run("start", 0)["failed"]
    assert (disks.record(0).state, disks.record(0).note, data(disks).read_text()) == ("running", "", "kept")


def test_a_disk_that_ran_is_not_made_anew_for_what_is_lost_here(disks):
    """Lost: a running board's power and disk, to a file of the proxy's that somebody removed."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    for name in ("made.json", "own.tar"):
        (disks.folder / "state" / "disks" / "fs_0" / name).unlink()
    result = disks.ask(0)
    assert "vm0 ran from its disk, and what is here of its root is not that claim's, or not whole" in str(result)
    assert not result["changed"]
    assert (disks.power(0), data(disks).read_text()) == ("on", "kept")


def made_of(disks):
    return disks.folder / "state" / "disks" / "fs_0" / "made.json"


@pytest.mark.parametrize("damage", ["lost", "text"])
def test_what_is_known_of_a_disk_is_restored_from_what_proves_it(disks, damage):
    """Lost: an instance's disk, for a file of the proxy's on a bad sector: a new root was the only way on."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    before = json.loads(made_of(disks).read_text())
    made_of(disks).write_text("{")
    if damage == "lost":
        made_of(disks).unlink()
    disks.cut(0)
    ways = {"text": "hetero.compute.reconcile restores it from own.tar and its claim", "lost": "make it ready: board"}
    assert ways[damage] in disks.run("start", 0)["msg"]
    assert "reconcile restores made.json where own.tar is whole" in str(disks.ready(0))
    assert ("missing: made.json", "would be put back") in found_by(disks, check=True)
    assert not json_in(made_of(disks))
    assert ("missing: made.json", "put back") in found_by(disks)
    assert json.loads(made_of(disks).read_text()) == dict(before, sure=False, unpacked=disks.record(0).claim.created)
    assert not found_by(disks)
    assert not disks.run("start", 0)["failed"]
    assert (disks.record(0).state, data(disks).read_text()) == ("running", "kept")
    assert json.loads(made_of(disks).read_text())["sure"]


@pytest.mark.parametrize("damage", ["lost", "no archive", "another key"])
def test_another_own_archive_restores_nothing(disks, damage):
    """Lost: who is known by which key: an instance's disk, taken for one that was made for somebody else."""
    disks.ask(0)
    disks.run("start", 0)
    own = made_of(disks).with_name("own.tar")
    made_of(disks).unlink()
    if damage == "lost":
        own.unlink()
    elif damage == "no archive":
        own.write_bytes(b"\0" * 512 + b"x")
    else:
        with disks.proxy() as proxy:
            proxy.store.put("vm0", host_key="ssh-ed25519 " + "A" * 68)
    looked = found_by(disks)
    ((text, done),) = [entry for entry in looked if "own.tar" in entry[0]]
    assert "no own.tar of vm0 is here: nothing is touched: rebuild the instance for a new root" in text
    assert done is None
    assert not made_of(disks).exists()
    assert disks.power(0) == "on"


def test_what_is_its_own_is_not_needed_once_the_disk_has_it(disks):
    """Lost: a whole root on a disk, for a file of the proxy's: the only way that was printed is a rebuild."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    assert not disks.run("stop", 0, keep=True)["failed"]
    made_of(disks).with_name("own.tar").unlink()
    assert not disks.ready(0).get("failed")
    assert not disks.run("start", 0)["failed"]
    assert data(disks).read_text() == "kept"


@pytest.mark.parametrize("of_record", ["gone", "unreadable"])
@pytest.mark.parametrize("beside", ["made.json", "own.tar", "both"])
def test_an_older_database_and_a_lost_file_format_no_disk(disks, of_record, beside):
    """Lost: a tenant's disk: a database from just after its claim, and something that says more is lost."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    with closing(sqlite3.connect(disks.params["state_db"])) as db:
        db.execute("UPDATE claims SET image_hash = NULL, host_key = NULL")
        db.execute("UPDATE boards SET state = 'power off', power = NULL")
        db.execute(
            "DELETE FROM events WHERE phase != 'records' AND id > (SELECT min(id) FROM events WHERE phase = 'claim')"
        )
        db.commit()
    record = disks.folder / "state" / "claims" / "board0.json"
    record.unlink() if of_record == "gone" else record.write_text("{")
    for name in ("made.json", "own.tar"):
        if beside in (name, "both"):
            made_of(disks).with_name(name).unlink()
    disks.cut(0)
    for _turn in ("as it is", "after reconcile"):
        assert "vm0 has a root of which neither the database nor the record" in disks.ready(0)["msg"]
        assert disks.run("start", 0)["failed"]
        assert data(disks).read_text() == "kept"
        found_by(disks)


def json_in(path):
    """Whether a file holds what can be read."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def found_by(disks, check=False):
    """What reconcile finds of board 0, and what it did."""
    with disks.proxy() as proxy:
        result = reconcile(proxy, [0], Change(check), 20)
        return [(entry["found"], entry["done"]) for entry in result["boards"][0]["found"]]


def test_other_files_are_not_unpacked_over(disks):
    """A tenant who removed the marker and broke his boot would lose all he has."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    (disks.root() / ".hetero-root").unlink()
    disks.run("stop", 0)
    disks.play(0, stall="nfs")
    disks.run("start", 0, timeout=2)
    disks.play(0)
    disks.run("stop", 0)
    result = disks.run("start", 0)
    assert "vm0's, and holds other files now (cat: " in result["msg"]
    assert "look at the disk and its cable" in result["msg"]
    assert data(disks).read_text() == "kept"


def test_an_archive_that_arrives_damaged(disks):
    """A root with a hole in it would boot, and fail in some other way."""
    disks.ask(0)
    shell = disks.shells[0]

    def damage(text):
        if "tar -C" in text:
            with (shell.folder / "mnt" / ".hetero" / "root.tar.gz").open("r+b") as file:
                file.write(b"damaged")

    shell.fail = damage
    result = disks.run("start", 0)
    assert result["failed"]
    assert "root.tar.gz: FAILED" in result["msg"]
    assert disks.record(0).state == "error"


def test_a_file_that_reads_back_otherwise(disks):
    """The archive was right, the disk is not."""
    disks.ask(0)

    def damage(text):
        if "sha256sum -c 2>&1" in text:
            for number in range(90):
                (disks.root() / "etc" / f"file {number}").write_text("other")

    disks.shells[0].fail = damage
    assert "FAILED" in disks.run("start", 0)["msg"]
    assert disks.record(0).state == "error"


def test_a_rebuild_begins_with_a_fresh_disk(disks):
    """Another image, or a fresh root, must not find the old one whole."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("old")
    with disks.proxy() as proxy:
        proxy.store.put("vm0", image_hash=None, host_key=None)
    disks.run("stop", 0)
    disks.ready(0)
    assert disks.run("start", 0)["failed"] is False
    assert not data(disks).exists()


def test_nothing_of_it_is_left(disks):
    """Its archive holds a private key; a board is free only without it."""
    disks.ask(0)
    disks.run("start", 0)
    disks.run("stop", 0)
    assert "folder" in disks.release(0)["msg"]
    disks.remove(0)
    disks.wipe(0)
    assert not disks.release(0).get("failed")
    assert not (disks.folder / "state" / "disks" / "fs_0").exists()


def test_only_boards_with_a_disk_serve(disks):
    """A request that cannot be served must say why before any power."""
    flavor = {"name": "any", "memory_mb": 1, "vcpus": 1, "local_gb": 1}
    request = board_fit.ClaimRequest("jackie", "jo", flavor, "demo", KEY, board=2, boot_source="disk")
    with disks.proxy() as proxy, pytest.raises(NoneFree, match="no disk to boot from"):
        board_claims.present(proxy, request, Change())


def test_another_boot_source_is_another_instance(disks):
    """The same name with another boot source would find another root."""
    disks.ask(0)
    with disks.proxy() as proxy, pytest.raises(Refused, match="another boot source: terminate it first"):
        proxy.store.claim("vm0", ["vm0"], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY, "nfs"), [0])
    assert "has boot source disk, not nfs" in disks.run("start", 0, boot_source="nfs")["msg"]
    with disks.proxy() as proxy:
        made = board_images.present(proxy, [0], board_images.ImageRequest(boot_source="nfs"), Change(), Deadline(60))
    assert "vm0 was claimed with boot source disk, not nfs: terminate it first, a boot source stays" in made["msg"]


def test_an_image_that_does_not_fit(disks):
    """A full disk would be found after minutes of unpacking, and the board be blamed for it."""
    program = disks.folder / "board0" / "bin" / "df"
    program.write_text("#!/bin/sh\necho '/dev/sda1  100  90  10  0% /mnt'\n")
    program.chmod(0o755)
    disks.ask(0)
    result = disks.run("start", 0)
    assert (result["blame"], disks.record(0).state) == ("image", "shutting down")
    assert "/dev/sda1 has 0 MB: ask for another flavor, or choose another image" in result["msg"]


def test_dry_run(disks):
    """--check would boot a board."""
    disks.ask(0)
    result = disks.run("start", 0, check=True)
    assert (result["failed"], disks.power(0), disks.shells[0].ran) == (False, "off", [])
    assert any("would boot into RAM" in line["text"] for line in result["lines"])


def test_dry_run_after_that_of_a_rebuild(disks):
    """`rebuild_instance --check` would say that nothing is to be done, as the old root is on the disk."""
    disks.ask(0)
    disks.run("start", 0)
    before = disks.record(0)
    result = disks.run("start", 0, check=True, rebuilt=[0])
    said = [line["text"] for line in result["lines"]]
    assert (result["failed"], result["changed"]) == (False, True)
    assert any("would boot into RAM, and unpack its root to /dev/sda1" in text for text in said), said
    assert any(text.endswith("is off: off → on") for text in said), said
    assert (disks.record(0), disks.power(0)) == (before, "on")


@pytest.mark.parametrize(
    ("size", "label"), [(1 << 30, "dos"), ((2 << 40) - 1, "dos"), (2 << 40, "gpt"), (3 << 40, "gpt")]
)
def test_a_disk_that_a_dos_table_cannot_hold_gets_another(tmp_path, size, label):
    """Lost: what a disk has beyond 2 TiB, or a board whose firmware knows no other table."""
    shell = LocalShell("board0", tmp_path)
    shell.program("blockdev", f"echo {size}")
    shell.program("sfdisk", f'cat > {tmp_path}/table; for disk; do :; done; : > "${{disk}}1"')
    (tmp_path / "dev" / "sda").touch()
    shell.run(["sh", "-c", disk_boot.FORMAT, "sh", "/dev/sda", "/dev/sda1", "/mnt/new"], Deadline(60))
    assert (tmp_path / "table").read_text() == f"label: {label}\n,,L\n"
