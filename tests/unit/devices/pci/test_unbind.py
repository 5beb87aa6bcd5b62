# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device is taken from its driver by a process of its own. If these fail, a verb hangs with the kernel, or a device
counts as free that its driver still has.
"""

from __future__ import annotations

import errno
import os
import signal
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.unbind import unbind, waits

GPU = "0000:01:00.0"


def taken(card, seconds=30.0):
    begun = []
    return unbind(GPU, card.paths, Deadline(seconds), begun.append), begun


def test_it_is_taken_and_the_process_was_noted_before(card):
    """Lost: whom to look for, where this call is killed while the kernel waits."""
    done, [begun] = taken(card)
    assert done
    assert card.driver(GPU) is None
    assert begun["address"] == GPU
    assert begun["started"] is not None
    assert not waits(begun, card.paths), "it has ended"


def test_without_a_driver_there_is_nothing_to_do(card):
    """Lost: a process for nothing."""
    assert taken(card)[0]
    assert taken(card) == (True, [])


def test_what_the_kernel_refuses_is_said(card):
    """Lost: why the card is not given."""
    card.fails["unbind", GPU] = errno.EBUSY
    with pytest.raises(StepFailed, match=r"nouveau does not let go of it \(Device or resource busy\)"):
        taken(card)
    assert card.driver(GPU) == "nouveau"


def test_a_driver_that_stays_although_all_went_well_is_said(card, monkeypatch):
    """Lost: the same, where something binds it again at once."""
    monkeypatch.setattr(sysfs, "put", lambda _path, _value: None)
    with pytest.raises(StepFailed, match="is on nouveau still, although it was unbound"):
        taken(card)


def test_who_waits_longer_than_one_may_is_left_behind_and_known_again(card):
    """Lost: the verb, which would wait for hours; and whether the device may be touched meanwhile."""
    card.fails["unbind", GPU] = lambda: time.sleep(60)
    done, [begun] = taken(card, 0.2)
    try:
        assert not done
        assert waits(begun, card.paths)
        assert not waits(dict(begun, started=begun["started"] + 1), card.paths), "another process that got its pid"
    finally:
        os.kill(begun["pid"], signal.SIGKILL)
        os.waitpid(begun["pid"], 0)
    assert not waits(begun, card.paths)


def test_where_it_cannot_be_noted_nothing_is_written(card):
    """Lost: a process that nobody knows of, and that holds the device for hours."""

    def full(_begun):
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(OSError, match="no space"):
        unbind(GPU, card.paths, Deadline(30.0), full)
    assert card.driver(GPU) == "nouveau"
    assert card.writes == []
