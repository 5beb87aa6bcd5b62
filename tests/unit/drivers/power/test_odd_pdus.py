# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials of driver apc with PDUs as bad as a seed makes them (odd_pdu.py): an outlet that nobody asked for is never
switched, what is reported as done is done, and everything else is said in an error, before its time is up.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import masking
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import (
    OutletsFailed,
    session,
    set_outlets,
)
from ansible_collections.hetero.compute.tests.unit.drivers.power.odd_pdu import HARMLESS, OddPdu

#: Of the same 700 PDUs, those of the normal run and all.
SOME, ALL = range(40), range(700)
#: Seconds for a batch; a PDU that any user could meet gets more, for it must obey on a busy machine too.
PATIENCE, MORE_PATIENCE = 8.0, 90.0
#: Passwords that our own words have by chance: an outlet's number, a dash, the mask.
IN_OURS = ("1", "2", "- ", "*")
#: Seconds past its time after which a batch hangs.
HANGS = 60.0


def trial(seed, folder):
    """(how it ended, what is wrong with that or None)"""
    pdu, dice = OddPdu(seed), random.Random(f"user {seed}")
    names = [str(number) for number in pdu.states]
    # All that a list with a bad row, or one that ends there, would show, is where the entry for all outlets tempts.
    others, first = [name for name in names if name != str(pdu.odd_row)], names[: pdu.odd_row - 1]
    asked = dice.choice((names, others, first or others, dice.sample(names, 1), dice.sample(names, min(3, len(names)))))
    wanted = dict.fromkeys(asked, dice.choice(("on", "off", "cycled")))
    harmless, done, error = pdu.odd <= HARMLESS, {}, None
    deadline = Deadline(MORE_PATIENCE if harmless else PATIENCE)
    try:
        with session(f"pdu-{seed}", pdu.settings, pdu.secrets, deadline, str(folder)) as opened:
            done = set_outlets(opened, wanted, deadline, window=2.0)
    except OutletsFailed as failed:
        done, error = failed.results, failed
    except HeteroError as refused:
        error = refused
    finally:
        late = deadline.spent - deadline.seconds
        pdu.close()
    others = [change for change in pdu.switched if str(change[0]) not in asked]
    false = [outlet for outlet in done if not obeyed(pdu, int(outlet), wanted[outlet])]
    wrong = None
    if others:
        wrong = f"wrong outlets: {others}, asked for {wanted}"
    elif false:
        wrong = f"false success: {false} of {done}, they are {pdu.states}"
    elif late > HANGS:
        wrong = f"hung {late:.0f} s past its time"
    elif error and is_told(pdu.password, str(error.failure)):
        wrong = f"tells its password: {error.failure}"
    elif harmless and error and "stuck" not in pdu.odd:
        wrong = f"refused for nothing: {error}"
    elif not pdu.sound:
        wrong = "the emulator itself ended in a traceback"
    ended = "refused" if error else "succeeded"
    return ended, wrong and f"seed {seed}, {pdu.dialect}, {sorted(pdu.odd)}: {wrong}"


def is_told(password, text):
    """Whether the password is in it; one so short that words have it by chance, as a word of its own."""
    if len(password) >= masking.PIECE:
        return password in text
    before, after = (r"(?<!\w)" if password[0].isalnum() else ""), (r"(?!\w)" if password[-1].isalnum() else "")
    return password not in IN_OURS and re.search(f"{before}{re.escape(password)}{after}", text) is not None


def obeyed(pdu, outlet, wanted):
    """Whether it is as wanted; a cycled one was switched off before it was switched on, if it was on."""
    changes = [state for number, state in pdu.switched if number == outlet]
    if wanted == "cycled":
        return pdu.states[outlet] == "on" and changes[-1:] == ["on"]
    return pdu.states[outlet] == wanted


@pytest.mark.parametrize("seeds", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"])
def test_no_other_outlet_and_no_false_success(seeds, tmp_path, capsys):
    """Without it, a screen that was drawn badly would cost somebody else's board its power."""
    start = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(lambda seed: trial(seed, tmp_path), seeds))
    wrong = [fault for _ended, fault in ends if fault]
    counts = collections.Counter(ended for ended, _fault in ends)
    with capsys.disabled():
        kinds = collections.Counter(fault.split(": ")[1] for fault in wrong)
        print(f"\n{len(ends)} PDUs: {dict(counts)}, wrong: {dict(kinds)}, {time.monotonic() - start:.0f} s")
    assert not wrong, "\n".join(wrong)
    assert counts["succeeded"] > len(ends) // 4
    assert counts["refused"] > len(ends) // 20


#: What is only drawn in another way, and is read all the same; what is left out, or contradicts, and is not.
READ = sorted(HARMLESS | {"banner", "again", "late again", "ends", "no echo", "prompt", "pending"})
NOT_READ = [("menu", "shuffled"), ("menu", "other outlet"), ("menu", "question")]
NOT_READ += itertools.product(["menu", "cli"], ["cut row", "state cut", "unknown", "joined", "doubled"])


def one(folder, dialect, oddity, seed=1):
    """(PDU, error or None) of a batch of three of five outlets, of which outlet 2's row is the odd one."""
    pdu = OddPdu(seed, {oddity}, dialect, 5)
    pdu.odd_row, pdu.always = 2, True
    wanted, deadline = {"1": "cycled", "3": "on", "4": "off"}, Deadline(MORE_PATIENCE)
    pdu.states.update({3: "off", 4: "on"})
    try:
        with session("pdu-t", pdu.settings, pdu.secrets, deadline, str(folder)) as opened:
            set_outlets(opened, wanted, deadline)
    except HeteroError as error:
        return pdu, error
    finally:
        pdu.close()
    return pdu, None


@pytest.mark.parametrize("dialect", ["menu", "cli"])
@pytest.mark.parametrize("oddity", READ)
def test_read_all_the_same(tmp_path, dialect, oddity):
    """Without it, a banner, a bell, a window's title or a name of a user's own would cost everybody the PDU."""
    pdu, error = one(tmp_path, dialect, oddity)
    assert error is None, error
    assert (pdu.states[1], pdu.states[3], pdu.states[4]) == ("on", "on", "off")
    assert {outlet for outlet, _state in pdu.switched} == {1, 3, 4}


@pytest.mark.parametrize(("dialect", "oddity"), NOT_READ)
def test_refused_and_said(tmp_path, dialect, oddity):
    """Without it, a guess at a list that was cut would cost another board its power."""
    pdu, error = one(tmp_path, dialect, oddity)
    assert "pdu-t: its list of outlets is not understood" in str(error) or "pdu-t: its screen has no" in str(error)
    assert pdu.switched == []


@pytest.mark.parametrize("oddity", ["pending", "unknown", "cut row", "state cut", "numberless", "cut list", "password"])
def test_the_entry_for_all_outlets_is_for_all(tmp_path, oddity):
    """Without it, who asks for all outlets but one, of a list without that one's row, would switch that one too."""
    pdu = OddPdu(1, {oddity}, "menu direct", 5)
    pdu.odd_row, pdu.always = (5 if oddity == "cut list" else 2), True
    if oddity == "password":
        pdu.password = pdu.secrets["password"] = "OFF"
    pdu.states.update({outlet: "off" if outlet == pdu.odd_row else "on" for outlet in pdu.states})
    wanted = {str(outlet): "off" for outlet in pdu.states if outlet != pdu.odd_row}
    deadline = Deadline(MORE_PATIENCE)
    try:
        opened = session("pdu-t", pdu.settings, pdu.secrets, deadline, str(tmp_path))
        with contextlib.suppress(HeteroError), opened as logged_in:
            set_outlets(logged_in, wanted, deadline)
    finally:
        pdu.close()
    assert pdu.odd_row not in [outlet for outlet, _state in pdu.switched]
    if oddity in ("pending", "password"):
        assert len(pdu.switched) == 4, "the others are switched one by one"
