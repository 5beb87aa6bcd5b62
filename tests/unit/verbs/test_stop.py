# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a stopped instance loses its board or its data, or does not come up again."""

from __future__ import annotations


def stop(site, **given):
    return site.module("tilera_boot", boards=[0], state="stopped", keep=True, instance="jackie", timeout=10, **given)


def start(site):
    return site.module("tilera_boot", boards=[0], instance="jackie", timeout=10)


def test_stopped_keeps_board_and_root_and_starts_again(jackie):
    data = jackie.state / "board-roots" / "fs_0" / "root" / "root" / "data"
    data.write_text("mine")
    before = jackie.what_is_there()
    assert stop(jackie, check=True)["changed"]
    assert jackie.what_is_there() == before
    assert stop(jackie)["changed"]
    record = jackie.record(0)
    assert (record.state, record.note, record.power, record.claim.instance) == ("power off", "stopped", "off", "jackie")
    assert jackie.outlets()["1"] == "off"
    assert jackie.exports() == before["exports"]
    assert not stop(jackie)["changed"]
    assert jackie.provision("bob")[0]["boards"][0]["board"] == 1, "a stopped instance's board is nobody else's"
    jackie.terminate("bob")
    assert start(jackie)["changed"]
    assert jackie.what_is_there() == before
    assert data.read_text() == "mine"
    assert jackie.record(0).note == ""
    assert not start(jackie)["changed"]


def test_a_stopped_instance_can_be_terminated(jackie):
    stop(jackie)
    assert not any(result.get("failed") for result in jackie.terminate())
    assert jackie.what_is_there() == jackie.clean()
