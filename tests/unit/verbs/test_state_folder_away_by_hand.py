# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is not mounted, and images were imported since (playbook proxy does that). If these fail,
what reconcile leaves alone then is cut by pdu_mgr (Nova calls it), or loses export and boot files to the next request.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar


@pytest.fixture
def away(jackie):
    """jackie runs on board 0, and does not answer ssh (her firewall)."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    jackie.state.rename(jackie.folder / "not mounted")
    jackie.state.mkdir()
    return jackie


def test_pdu_mgr_does_not_cut_it(away):
    """Lost: jackie's power. reconcile says of the same board: made ready for somebody, nothing of it is touched."""
    shutil.copy(away.params["boards_file"], away.tftp / "tilera_boards")
    command = ["pdu-a", "1", "2", "--config", away.params["config"]]
    with pytest.raises(Refused, match=f"feeds board0, .*: see that the file system of {away.state} is mounted"):
        pdu_mgr.main(command)
    assert away.outlets()["1"] == "on"
    assert pdu_mgr.main([*command, "--force"]) == 0


def test_the_next_request_leaves_its_export_and_boot_files(away):
    """Lost: the kernel and the root that jackie's board is served, to bob, who is given her board."""
    store = ImageStore(str(away.state / "images"))
    store.import_image(image_tar(away.folder / "again.tar", kernel="BOBS" * 1000), "debian")
    kernel = away.tftp / "10.0.2.1" / "vmlinux_0"
    before = kernel.read_bytes()
    results = away.provision("bob")
    assert kernel.read_bytes() == before, [result.get("msg") or result["lines"][-1]["text"] for result in results]
    assert results[0]["boards"][0]["board"] == 1


def test_the_way_that_status_names_makes_it_free(away):
    """Lost: a board, to files that nobody wants."""
    (note,) = [board["note"] for board in away.module("board_info")["boards"] if board["note"]]
    assert f"see that the file system of {away.state} is mounted" in note
    assert "module board_image with state=absent" in note
    away.cut(0)
    assert not away.module("board_image", boards=[0], state="absent").get("failed")
    assert not any(board["note"] for board in away.module("board_info")["boards"])


def test_a_claim_of_somebody_else_does_not_make_it_free(away):
    """Lost: jackie's board, to the second request after the file system went away, for the first one's claim told that
    the state folder is in use.
    """
    image = image_tar(away.folder / "again.tar", kernel="BOBS" * 1000)
    ImageStore(str(away.state / "images")).import_image(image, "debian")
    away.cut(0)
    assert not any(result.get("failed") for result in away.provision("bob"))
    for name in ("eve", "mallory"):
        given = [board["board"] for result in away.provision(name) for board in result.get("boards", [])]
        assert 0 not in given
    found = away.module("board_reconcile", timeout=10)["boards"][0]["found"]
    assert "made ready for somebody" in found[0]["found"]
    assert found[0]["done"] is None
