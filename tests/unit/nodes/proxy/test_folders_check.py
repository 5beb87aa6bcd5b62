# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a set-up with another folder has a node forget the instances that run on its boards, and a boards file
moves a board in use unseen.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    Claim,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import folders_check, preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan


@pytest.fixture
def plan(tmp_path):
    """A node that was set up, whose board 1 is jackie's, and the same set-up again."""
    state, tftp = tmp_path / "state", tmp_path / "tftpboot"
    for folder in (state, tftp):
        folder.mkdir()
    claim = Claim(1, "jackie", "jackie", "jo", {"name": "tp64.8x8"}, "demo", "ssh-rsa AAAA", 1.5, image_hash="ab")
    with Store(str(state / "state.db"), records=str(state / FOLDER)) as store:
        store.adopt(Kept(claim, "running"), "running", "", "a test")
    (tmp_path / "proxy.json").write_text(json.dumps(dict(tftp_root=str(tftp), state_folder=str(state))))
    config = str(tmp_path / "proxy.json")
    return Plan(server="10.0.2.254", state_folder=str(state), tftp_root=str(tftp), config=config)


def said(plan):
    options = ("tftp_proxy_tftp_root: is", "tftp_proxy_state_folder: is")
    return [str(defect) for defect in preflight.look(plan).defects if str(defect).startswith(options)]


@pytest.mark.parametrize(
    ("key", "what"), [("tftp_root", "boot entries"), ("state_folder", "roots and records")], ids=lambda value: value
)
def test_a_folder_stays_while_anybody_has_a_board(plan, tmp_path, key, what):
    """Lost: jackie, whom the node forgets; or her board's next boot."""
    before = getattr(plan, key)
    other = f"{tmp_path}/other"
    assert said(replace(plan, **{key: other})) == [
        f"tftp_proxy_{key}: is {other}, and in {before} are the {what} of jackie on board1: "
        f"set it when no board has an instance; until then tftp_proxy_{key}: {before}"
    ]


def test_the_same_folder_by_another_name(plan, tmp_path):
    """Lost: a set-up, to whoever moved a folder to a larger disk and left a link."""
    (tmp_path / "link").symlink_to(plan.state_folder)
    assert said(replace(plan, state_folder=str(tmp_path / "link"))) == []


def test_a_folder_of_nobody_may_be_another(plan, tmp_path):
    """Lost: the choice, where nobody has a board; a folder that was moved by hand and is named anew is such a case."""
    moved = tmp_path / "moved"
    (tmp_path / "state").rename(moved)
    assert said(replace(plan, state_folder=str(moved))) == []


@pytest.mark.parametrize("text", ["", "{", None])
def test_a_node_without_a_configuration_of_its_own(plan, tmp_path, text):
    """Lost: the set-up that mends it."""
    if text is None:
        (tmp_path / "proxy.json").unlink()
    else:
        (tmp_path / "proxy.json").write_text(text)
    assert said(replace(plan, state_folder=str(tmp_path / "other"))) == []


def test_all_who_have_a_board_are_named_and_both_folders(plan, tmp_path):
    """Lost: who is to be asked before the folder is moved: the set-up would be refused once for each."""
    claim = Claim(0, "carol", "carol", "jo", {"name": "tp64.8x8"}, "demo", "ssh-rsa AAAA", 1.5, image_hash="ab")
    with Store(f"{plan.state_folder}/state.db", records=f"{plan.state_folder}/{FOLDER}") as store:
        store.adopt(Kept(claim, "running"), "running", "", "a test")
    found = Findings()
    folders_check.moved(replace(plan, tftp_root=f"{tmp_path}/t", state_folder=f"{tmp_path}/s"), found)
    assert [defect.thing for defect in found.defects] == ["tftp_proxy_tftp_root", "tftp_proxy_state_folder"]
    assert all(defect.what.endswith(" of carol on board0, jackie on board1") for defect in found.defects)
