# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards with disks in a temporary folder: a disk is a file, its board's shell is this machine's, boots are played.

What a board runs is run for real, but for the programs that need a block device or may mount: scripts in their place
do with files what those do with disks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest, wipe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import Shell
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import IMAGE, KEY, Site
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl

RAM = "cd" * 32
MIB = 1 << 20
PROGRAMS = {
    "blockdev": 'stat -c %s "$2"',
    # How this disk takes a discard is in the file DISK.discard.
    "blkdiscard": """case $(cat "$1.discard" 2>/dev/null) in
ignore) ;;
unsupported) echo "blkdiscard: $1: BLKDISCARD ioctl failed: Operation not supported" >&2; exit 1 ;;
broken) echo "blkdiscard: $1: BLKDISCARD ioctl failed: Input/output error" >&2; exit 1 ;;
*) size=$(stat -c %s "$1"); : > "$1"; truncate -s "$size" "$1" ;;
esac""",
    "sfdisk": 'cat > /dev/null; for disk; do :; done; : > "${disk}1"; rm -rf "${disk}1.fs"',
    "mkfs.ext4": 'for part; do :; done; rm -rf "$part.fs"; mkdir -p "$part.fs/lost+found"',
    "mount": 'while [ $# -gt 2 ]; do shift; done; [ -d "$1.fs" ] || exit 32; rm -rf "$2"; ln -s "$1.fs" "$2"',
    "umount": 'rm "$1"; mkdir "$1"',
    "sync": ":",
}
#: What /sys says of a disk of these boards, a sector for each 512 bytes.
SYS = {"size": "10548", "device/vendor": "QEMU    \n", "device/wwid": ""}


class LocalShell(Shell):
    """A board's shell: its /dev/sda, /mnt and /tmp are in a folder here."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.ran = []
        self.puts = []
        self.hidden = set()
        self.fail = None  # called with the words of a command, or the target of a file, before it is done
        for part in ("dev", "mnt", "tmp", "bin", "sys/block", "sys/class/net/lo"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for program, text in PROGRAMS.items():
            self.program(program, text)

    def block(self, name, **files):
        """A block device, as /sys has it; `vendor` and the like lie in device/."""
        named = {key if key == "size" else f"device/{key}": text for key, text in files.items()}
        for path, text in {**SYS, **named}.items():
            file = self.folder / "sys" / "block" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def program(self, name, text):
        """A program on the board, in place of the system's own."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def hide(self, name):
        """The board has no such program."""
        self.hidden.add(name)

    def _here(self, word):
        return re.sub("/dev/(?!null|zero|urandom)|/mnt|/tmp/|/sys/", lambda found: f"{self.folder}{found[0]}", word)

    def run(self, argv, deadline, stdin=None):
        self.ran.append(argv)
        if self.fail:
            self.fail(argv[2] if argv[0] == "sh" else argv[0])
        words = [self._here(word) for word in argv]
        for name in self.hidden:
            words[2] = words[2].replace(f"command -v {name} ", "false ")
        env = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        with open(stdin or os.devnull, "rb") as source:
            done = subprocess.run(
                words, check=False, stdin=source, capture_output=True, env=env, timeout=deadline.left, text=True
            )
        if done.returncode:
            raise HeteroError(f"a script ended with {done.returncode} and said: {done.stderr.strip()}", self.name)
        return done.stdout

    def put(self, source, target, deadline, progress=None):
        self.puts.append(os.path.basename(target))
        if self.fail:
            self.fail(target)
        with open(source, "rb") as file, open(self._here(target), "wb") as copy:
            copy.write(file.read())
        if progress:
            progress(os.path.getsize(source), os.path.getsize(source))


def lost(where):
    """A `fail` that loses the board once, when what it is about to do contains `where`."""
    left = [1]

    def fail(text):
        if where in text and left:
            left.pop()
            raise Lost("the connection to it is lost (Broken pipe)", "board0", "look at its power")

    return fail


class DiskSite(Site):
    """Board 0 and 1 have a disk, board 1 has two; 2 has none."""

    def __init__(self, folder):
        super().__init__(folder)
        images = folder / "state" / "images"
        root = images / IMAGE / "root"
        (root / "etc" / "ssh").mkdir(parents=True)
        (root / "root").mkdir()
        (root / "etc" / "hostname").write_text("image\n")
        (root / "etc" / "ssh" / "ssh_host_rsa_key").write_text("of the image\n")
        for number in range(90):
            (root / "etc" / f"file {number}").write_text(f"{number}\n" * 100)
        (images / RAM).mkdir()
        (images / RAM / "image.json").write_text('{"arch": "tilepro64", "ram": true}')
        for name in ("kernel", "initrd"):
            (images / RAM / name).write_text(f"ram {name}")
        (images / "names").mkdir()
        (images / "names" / "demo").write_text(f"{IMAGE}\n")
        (images / "names" / "ram").write_text(f"{RAM}\n")
        self.config["ram_images"] = {"TILEpro64": "ram"}
        self.shells = {}
        for number, names in {0: ["sda"], 1: ["sda", "sdb"]}.items():
            self.config["boards"][str(number)]["disk"] = [f"/dev/{name}" for name in names]
            self.shells[number] = LocalShell(f"board{number}", folder / f"board{number}")
            for name in names:
                self.disk(number, name).write_bytes(b"a tenant's secret\n" * 300032)
                self.shells[number].block(name)
        self.write()

    def disk(self, number, name="sda"):
        return self.folder / f"board{number}" / "dev" / name

    def discards(self, number, how, name="sda"):
        """How a disk takes a discard: ignore, unsupported or broken."""
        self.disk(number, f"{name}.discard").write_text(how)

    def root(self, number=0):
        """The files on a board's first partition."""
        return self.disk(number, "sda1.fs")

    def use(self, *numbers):
        """A tenant has had these boards; they are stopped, and what was made for them is gone."""
        self.claim(*numbers)
        self.run("start", *numbers)
        self.run("stop", *numbers)
        for number in numbers:
            shutil.rmtree(Root(str(self.folder / "state"), number).folder)

    def wipe(self, *numbers, check=False, timeout=20, **request):
        with self.proxy() as proxy:
            return wipe(proxy, list(numbers), WipeRequest(**request), lifecycle.Options(timeout=timeout, check=check))

    def ask(self, number, boot_source="disk"):
        """A claim as board_claim makes it, and what board_image makes ready for it."""
        with self.proxy() as proxy:
            name = f"vm{number}"
            proxy.store.claim(name, [name], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY, boot_source), [number])
        return self.ready(number)

    def ready(self, number):
        with self.proxy() as proxy:
            return board_images.present(proxy, [number], board_images.ImageRequest(), Change(), Deadline(60))

    def release(self, number):
        """As board_claim does it, state absent."""
        with self.proxy() as proxy:
            return board_releases.absent(proxy, Instances(f"vm{number}"), Change(), Deadline(60))

    def remove(self, number):
        with self.proxy() as proxy:
            return board_images.absent(proxy, [number], Change(), Deadline(60))


@pytest.fixture(scope="session", autouse=True)
def own_mounts():
    """Mounts of images, which need root; only this process sees them (tests/unit/conftest.py)."""
    if os.geteuid() != 0:
        pytest.skip("an image's files are mounted, which needs root: run as root")


@pytest.fixture
def disks(tmp_path, monkeypatch):
    site = DiskSite(tmp_path)
    monkeypatch.setattr(Fake, "shell", lambda self, board, system: site.shells[board.id])
    # What a board mounts from its own disk is not seen by its proxy.
    monkeypatch.setattr(Fake, "has_root", lambda self, board: False)
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    monkeypatch.setattr(presence, "QUIET", 0.3)
    programs = tmp_path / "programs"
    programs.mkdir()
    put_busctl(programs)
    (tmp_path / "ganesha.json").write_text("{}")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GANESHA", str(tmp_path / "ganesha.json"))
    return site
