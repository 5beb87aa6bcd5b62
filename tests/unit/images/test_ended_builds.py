# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A build of an image that is ended half-way: the machine keeps its files, and no mount.

A `mmdebstrap` in PATH mounts a folder of the machine below the root that it makes, as the real one does proc and sys,
and waits there.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below
from ansible_collections.hetero.compute.tests.in_time import in_time

ROOT = Path(__file__).resolve().parents[3]
LAB = ROOT / "roles" / "lab" / "files" / "images"
DEBIAN = ["amd64", "x86_64", "bookworm", "http://deb.debian.org/debian", "", ""]
#: Scripts that begin with mmdebstrap, and their arguments. FOLDER is where they build.
BUILDS = {
    ROOT / "roles" / "debian_image" / "files" / "build.sh": ["FOLDER", "debian", *DEBIAN],
    LAB / "container.sh": ["FOLDER/container.tar"],
    LAB / "board-arm64.sh": ["FOLDER/board.tar", "aarch64"],
    LAB / "node.sh": ["FOLDER/node", "udev"],
    ROOT / "tests" / "versions" / "root.sh": ["FOLDER/root", "bookworm", "MIRROR", "main", "KEYRING"],
}
#: $MACHINE is the folder of the machine; $READY a pipe that says when it is mounted, and by which process.
MMDEBSTRAP = """#!/bin/sh
for word in "$@"; do
    case $word in "$FOLDER"/*) root=$word ;; esac
done
mkdir -p "$root/proc"
mount --bind "$MACHINE" "$root/proc"
{ [ -e "$root/proc/file" ] && echo $$; } > "$READY"
exec sleep 600
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("ended", ["with all that it started", "alone"])
@pytest.mark.parametrize("script", BUILDS, ids=lambda script: script.name)
def test_a_build_that_is_ended_leaves_the_machine_as_it_was(tmp_path, script, ended):
    """Lost: what lies in /proc, /sys and /dev, or wherever else mounts lead to, when somebody interrupts a build."""
    machine, folder, ready = tmp_path / "machine", tmp_path / "folder", tmp_path / "ready"
    for place in (machine, folder, tmp_path / "bin"):
        place.mkdir()
    (machine / "file").write_text("of the machine")
    os.mkfifo(ready)
    played = tmp_path / "bin" / "mmdebstrap"
    played.write_text(MMDEBSTRAP)
    played.chmod(0o755)
    env = {**os.environ, "PATH": f"{played.parent}:{os.environ['PATH']}"}
    env |= {"MACHINE": str(machine), "FOLDER": str(folder), "READY": str(ready)}
    argv = ["bash", str(script), *(word.replace("FOLDER", str(folder)) for word in BUILDS[script])]
    with subprocess.Popen(argv, env=env, start_new_session=True, stdout=subprocess.DEVNULL) as build:
        with in_time(120):
            below = int(ready.read_text())
        if ended == "alone":
            build.terminate()
        else:
            os.killpg(build.pid, signal.SIGTERM)
        build.wait(timeout=120)
    if ended == "alone":
        os.kill(below, signal.SIGTERM)
    assert (machine / "file").read_text() == "of the machine"
    assert mounts_below(str(folder)) == {}
    assert list(folder.iterdir()) == []


def test_no_script_has_mmdebstrap_mount_where_it_removes_files():
    """Lost: the same, by a script that gets to mmdebstrap after other work, or that is new."""
    scripts = [*ROOT.glob("roles/**/*.sh"), *ROOT.glob("tests/**/*.sh")]
    calls = [
        (script.name, line)
        for script in scripts
        for line in script.read_text(encoding="utf-8").splitlines()
        if re.search(r"^[^#]*mmdebstrap -", line)
    ]
    assert {name for name, _line in calls} >= {*(script.name for script in BUILDS), "board.sh", "kvm-host.sh"}
    assert [call for call in calls if "unshare --mount mmdebstrap -" not in call[1]] == []
