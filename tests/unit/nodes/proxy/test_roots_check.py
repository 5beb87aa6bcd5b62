# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a proxy is set up without room for roots, or nobody hears which boards still share a file system."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import roots_check

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="block devices need root: run as root")
BOARDS = (SimpleNamespace(local_gb=1), SimpleNamespace(local_gb=0))


def look(state, overcommit=1.0, boards=BOARDS):
    found = Findings()
    roots_check.roots(str(state), overcommit, 1, boards, found)
    return found


def test_a_machine_with_room_has_nothing_to_say(tmp_path):
    found = look(tmp_path / "new" / "folder")
    assert (found.defects, found.notes) == ([], [])
    facts = found.facts["roots"]
    assert (facts["promised"], facts["sharing"], facts["shared_file"]) == (0, [], "")
    assert facts["there"] > 0
    assert not (tmp_path / "new").exists()


def test_what_is_promised_and_what_is_there_is_said(tmp_path):
    """Lost: a warning before the disk that all roots share is full."""
    (tmp_path / "board-roots" / "fs_0").mkdir(parents=True)
    with open(tmp_path / "board-roots" / "fs_0" / "root.ext4", "wb") as file:
        file.truncate(8 << 40)
    [note] = look(tmp_path, 1e9).notes  # however full this machine is
    assert "8192 GiB are promised, " in str(note)
    assert "no further root" not in str(note)
    said = str(look(tmp_path, 1.0).notes[0])
    assert said.startswith(f"{tmp_path}/board-roots: 8192 GiB are promised, ")
    assert "(tftp_proxy_roots_overcommit 1): no further root can be given: terminate instances, or raise it; " in said
    found = look(tmp_path, 1.0, [SimpleNamespace(local_gb=900_000)])
    assert "local_gb of all boards is 900000 GiB" in str(found.notes[-1])


def test_a_disk_without_space_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(roots_check, "SPARE", 1 << 60)
    assert "needed: free space" in str(look(tmp_path).defects[0])


def test_a_machine_without_block_devices_is_refused(tmp_path, monkeypatch):
    """Lost: the first claim, which finds out what the set-up could have said."""
    monkeypatch.setattr(loop, "CONTROL", str(tmp_path / "none"))
    [defect] = look(tmp_path).defects
    assert "0 can be had here, 2 boards need one each" in str(defect)
    assert "loop module" in str(defect)


def test_boards_whose_roots_share_a_file_system_are_named(tmp_path):
    """Lost: another's files, by a tenant who nobody knew could reach them."""
    for number, claim in ((3, "jackie 1.5"), (12, "bob 2.5")):
        folder = tmp_path / "roots" / f"fs_{number}"
        folder.mkdir(parents=True)
        (folder / "made.json").write_text(json.dumps(dict(claim=claim, image="x", kind="overlay", whole=True)))
    (tmp_path / "roots.ext4").touch()
    found = look(tmp_path)
    [note] = found.notes
    assert str(note).startswith("board12 (bob), board3 (jackie): have roots that an older release made on one file")
    assert "rebuild_instance" in str(note)
    assert found.facts["roots"]["sharing"] == ["fs_12", "fs_3"]
    assert found.facts["roots"]["shared_file"] == "kept"


def test_a_shared_file_system_that_cannot_be_looked_into_is_kept(tmp_path):
    """Lost: roots on a file system that happens not to be mounted."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots.ext4").touch()
    assert look(tmp_path).facts["roots"]["shared_file"] == "kept"
