# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards whose driver knows no keys, such as Tilera's, in RAM: what the blueprint's kernels need, and what is said."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest, wipe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import RAM

WHAT = "its key not asked for (boot driver fake knows none)"


@pytest.fixture
def no_keys(disks, monkeypatch):
    """Disks of boards that prove no key, and a RAM image with all built into its kernel."""
    monkeypatch.setattr(Fake, "ram_keys", False)
    (disks.folder / "state" / "images" / RAM / "initrd").unlink()
    return disks


def test_a_root_is_laid_without_an_initrd_and_no_key_is_said_to_be_proven(no_keys):
    """Lost: option 2 of the blueprint, whose kernels have all built in; or trust in a key that nobody has seen."""
    no_keys.config["boards"]["0"]["fake"] = {"thief": ["initrd_0"]}  # of no matter, for nothing secret is in one
    no_keys.write()
    no_keys.ask(0)
    result = no_keys.run("start", 0)
    assert (result.get("msg"), no_keys.record(0).state) == (None, "running")
    assert [event.text for event in no_keys.events(0, ["ram"])] == [f"RAM system answers, {WHAT}"]


def test_the_record_of_a_wipe_says_that_no_key_was_proven(no_keys):
    """Lost: what a wipe's proof is worth to who reads it later."""
    with no_keys.proxy() as proxy:
        result = wipe(proxy, [1], WipeRequest.of(proxy), lifecycle.Options(timeout=60))
    assert not result["failed"], result["msg"]
    assert result["boards"][0]["proof"]["key"] == WHAT[len("its key ") :]


def test_an_initrd_that_there_is_goes_with_the_kernel_as_it_is(no_keys):
    """The proxy's keys in it would be handed out for nothing."""
    images = no_keys.folder / "state" / "images" / RAM
    (images / "own").write_text("own initrd")
    (images / "image.json").write_text(json.dumps(dict(arch="tilepro64", ram=True, initrds={"ram": "own"})))
    path, seen = no_keys.folder / "tftpboot" / "10.0.2.1" / "initrd_0", []
    served = Fake.answers

    def look(driver, board, system, *rest):
        seen.append((system.root, path.read_bytes()))
        return served(driver, board, system, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fake, "answers", look)
        no_keys.ask(0)
        assert not no_keys.run("start", 0)["failed"]
    assert seen[0] == ("ram", b"own initrd")


def test_a_board_that_is_to_prove_a_key_is_not_switched_on_without_one(disks):
    """Lost: minutes for each board, each time, until somebody looks why its RAM system lets nobody in."""
    (disks.folder / "state" / "images" / RAM / "initrd").unlink()
    with disks.proxy() as proxy:
        result = wipe(proxy, [1], WipeRequest.of(proxy), lifecycle.Options(timeout=60))
    assert "RAM image ram: has no initrd, by which boot driver fake gives the proxy's keys" in result["msg"]
    assert disks.power(1) == "off"
    assert not disks.events(1, ["power"])
