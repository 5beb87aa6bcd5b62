# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, somebody opens a board that is running, or a broken one is handed out again."""

from __future__ import annotations


def maintenance(site, state, board=0, **given):
    return site.module("board_maintenance", boards=[board], state=state, **given)


def on(site, **given):
    return maintenance(site, "on", reason="its fan rattles", **given)


def test_taken_out_it_is_given_to_nobody_and_comes_back(site):
    assert on(site, check=True)["changed"]
    assert site.record(0).state == "power off"
    assert on(site)["changed"]
    assert not on(site)["changed"]
    record = site.record(0)
    assert (record.state, record.note) == ("maintenance", "its fan rattles")
    (claimed, *_others) = site.provision()
    assert claimed["boards"][0]["board"] == 1
    assert claimed["rejected"]["board0"] == ["maintenance: its fan rattles"]
    way = "end its maintenance first: ansible-playbook hetero.compute.maintenance -e node=board0 -e state=off"
    assert f"is in maintenance: {way}" in site.module("tilera_boot", boards=[0], state="stopped", timeout=10)["msg"]
    assert maintenance(site, "off", check=True)["changed"]
    back = maintenance(site, "off")
    assert (back["changed"], back["boards"][0]["state"]) == (True, "power off")
    assert (site.record(0).state, site.record(0).note, site.record(0).power) == ("power off", "", "off")
    assert [line["text"] for line in back["lines"]] == ["off: its outlet is off, nothing is left on it"]
    assert not maintenance(site, "off")["changed"]


def test_a_board_that_somebody_has_is_refused_and_named(jackie):
    assert "is running, and jackie of jackie has it" in on(jackie)["msg"]
    assert jackie.what_is_there() == jackie.running("jackie")


def test_a_board_in_error_goes(site):
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "no boot request within 41 s, twice")
    left = maintenance(site, "off")
    assert (left["changed"], left["boards"][0]["state"]) == (False, "error"), "it would be called free"
    assert on(site)["changed"]
    assert maintenance(site, "off")["changed"]


def test_it_comes_back_only_off_and_clean(site):
    """Lost: a board handed out with an operator's own system running on it, or with the last tenant's files."""
    on(site)
    site.pdu(board0="on")
    left = site.tftp / "10.0.2.1"
    left.mkdir(parents=True)
    result = maintenance(site, "off")
    assert f"stays in maintenance: its outlet is on; folder {left}" in result["msg"]
    assert "switch pdu-a outlet 1 off" in result["msg"]
    site.pdu(board0="off")
    left.rmdir()
    site.pdu(faults={"hang": True})
    assert "its outlet is not known" in maintenance(site, "off", timeout=0.3)["msg"]
    assert site.record(0).state == "maintenance"
    site.pdu()
    assert maintenance(site, "off")["changed"]
