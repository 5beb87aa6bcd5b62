# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU refused last is known to who only looks, until it tells its outlets again."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets, refusals
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD

WRONG = "quite-another-9"


def asked(pdu, seconds=60.0, **secrets):
    known, deadline = dict(pdu.secrets, **secrets), Deadline(seconds)
    with outlets.session("pdu/t", pdu.settings, known, deadline, str(pdu.folder)) as one:
        return one.status()


def test_a_wrong_password_is_known_until_the_right_one_is_taken(emulated):
    """Lost: why no board of a PDU can be had; or a wrong password that is still told when it was put right."""
    pdu = emulated()
    with pytest.raises(HeteroError, match="refuses user"):
        asked(pdu, password=WRONG)
    said = refusals.last(str(pdu.folder), ["pdu/t", "pdu-u"])
    assert list(said) == ["pdu/t"]
    assert "refuses user 'apc' with the password given" in said["pdu/t"]
    assert said["pdu/t"].endswith(" s ago)")
    folder = pdu.folder / refusals.FOLDER
    (path,) = folder.iterdir()
    assert all(secret not in path.read_text() + said["pdu/t"] for secret in (WRONG, PASSWORD))
    assert (folder.stat().st_mode & 0o77, path.stat().st_mode & 0o77) == (0, 0)
    assert asked(pdu)
    assert refusals.last(str(pdu.folder), ["pdu/t"]) == {}


@pytest.mark.parametrize("caused", [False, True])
def test_another_user_of_a_pdu_is_no_refusal(tmp_path, caused):
    """Lost: the trust in what is told, by a line for each time that two plays met."""
    error = Busy("another user is logged in", "pdu-a", "wait")
    if caused:
        error, error.__cause__ = TimedOut("gave up", "pdu-a", "wait"), error
    with pytest.raises(HeteroError), refusals.kept(str(tmp_path), "pdu-a", str):
        raise error
    assert refusals.last(str(tmp_path), ["pdu-a"]) == {}


def test_a_secret_that_an_error_echoes_is_not_kept(tmp_path):
    """Lost: a password, in a file and on each screen that shows the status."""
    with pytest.raises(HeteroError), refusals.kept(str(tmp_path), "pdu-a", lambda text: text.replace(WRONG, "***")):
        raise HeteroError(f"said: {WRONG}", "pdu-a")
    assert refusals.last(str(tmp_path), ["pdu-a"])["pdu-a"].startswith("pdu-a: said: ***")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"name": "pdu-b"}', '{"name": "pdu-a", "time": "x", "text": 1}', '{"time": 1']
)
def test_what_is_no_refusal_of_that_pdu_is_not_told(tmp_path, text):
    """Lost: the whole status, for a damaged file that is no more than a hint."""
    (tmp_path / refusals.FOLDER).mkdir()
    (tmp_path / refusals.FOLDER / "pdu-a.json").write_text(text)
    assert refusals.last(str(tmp_path), ["pdu-a"]) == {}


def test_a_clock_that_was_set_back_and_an_endless_text(tmp_path):
    """Lost: a status of megabytes, or of a negative time."""
    (tmp_path / refusals.FOLDER).mkdir()
    data = dict(name="pdu-a", time=9e9, text="M" * 99999)
    (tmp_path / refusals.FOLDER / "pdu-a.json").write_text(json.dumps(data))
    said = refusals.last(str(tmp_path), ["pdu-a"])["pdu-a"]
    assert said.endswith("… (0 s ago)")
    assert len(said) < 1100


def test_the_error_is_told_although_it_cannot_be_kept(tmp_path):
    """Lost: the error itself, where the run folder's disk is full or another's."""
    (tmp_path / refusals.FOLDER).write_text("a file in its place")
    with pytest.raises(HeteroError, match="the PDU's own words"), refusals.kept(str(tmp_path), "pdu-a", str):
        raise HeteroError("the PDU's own words", "pdu-a")
    os.unlink(tmp_path / refusals.FOLDER)
    with refusals.kept(str(tmp_path), "pdu-a", str):
        pass
