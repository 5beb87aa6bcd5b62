# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PDU that is a file: what it switches, and its faults, one by one."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Busy, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake


@pytest.fixture
def fake(tmp_path):
    """A function: a fake PDU with these faults; `read()` is what its file has."""

    def make(seconds=60.0, faults=None):
        path = tmp_path / "fake.json"
        path.write_text(
            json.dumps({"outlets": {"1": "off", "2": "on", "3": "off"}, **((faults and {"faults": faults}) or {})})
        )
        one = Fake("pdu-f", {"path": str(path)}, {}, Deadline(seconds))
        one.read = lambda: json.loads(path.read_text())
        return one

    return make


def test_it_switches_what_is_asked_for(fake, tmp_path):
    """Lost: what tests of everything above power stand on."""
    one = fake()
    one.login()
    assert one.switch(["1", "2"], "on") == dict.fromkeys(["1", "2"], Answer(True, "done"))
    assert one.status() == one.read()["outlets"] == {"1": "on", "2": "on", "3": "off"}
    assert [path.name for path in tmp_path.iterdir()] == ["fake.json"], "each write replaces the file"
    one.logout()


def test_outlets_that_do_not_obey(fake):
    one = fake(faults={"stuck": ["1"], "refused": ["2"]})
    answers = one.switch(["1", "2", "3"], "off" if one.status()["3"] == "on" else "on")
    assert answers == {"1": Answer(True, "done"), "2": Answer(False, "refused"), "3": Answer(True, "done")}
    assert one.status() == {"1": "off", "2": "on", "3": "on"}
    one.switch(["2"], "off")
    assert one.status()["2"] == "on"


def test_a_place_that_is_taken_is_free_after_so_many_logins(fake):
    one = fake(faults={"busy": 2})
    for left in (1, 0):
        with pytest.raises(Busy, match="pdu-f: another user is logged in: wait for its other user"):
            one.login()
        assert one.read()["faults"] == {"busy": left}
    one.login()
    assert one.read()["faults"] == {"busy": 0}


@pytest.mark.parametrize("asks", ["login", "status", "switch"])
def test_one_that_hangs_ends_with_the_time(fake, asks):
    one = fake(seconds=0.1, faults={"hang": True})
    with pytest.raises(Lost, match="pdu-f: no answer: look at the PDU, or raise timeout"):
        getattr(one, asks)(*([["1"], "on"] if asks == "switch" else []))
    assert one.deadline.passed
    assert one.read()["outlets"]["1"] == "off"


def test_a_file_that_is_none_is_named(fake, tmp_path):
    one = fake()
    for text in ("no json", None):
        (tmp_path / "fake.json").write_text(text) if text else (tmp_path / "fake.json").unlink()
        with pytest.raises(BadInput, match=r"fake.json: cannot be read .*: write the file of fake PDU pdu-f"):
            one.status()


def test_a_welded_outlet_switches_on_and_never_off(fake):
    """Lost: what tests of boards stand on that an order leaves on."""
    one = fake(faults={"welded": ["1"]})
    assert one.switch(["1", "3"], "on") == dict.fromkeys(["1", "3"], Answer(True, "done"))
    assert one.switch(["1", "3"], "off") == dict.fromkeys(["1", "3"], Answer(True, "done"))
    assert one.status() == {"1": "on", "2": "on", "3": "off"}
