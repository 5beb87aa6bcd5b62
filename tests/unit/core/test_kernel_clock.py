# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's word on its clock. If these fail, leases end by a wrong clock, or never after a machine was off."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import kernel_clock


@pytest.mark.parametrize(("answer", "known"), [(-1, False), (0, True), (1, True), (4, True), (5, False)])
def test_what_the_kernel_answers(monkeypatch, answer, known):
    """Lost: an instance, to a clock of which the kernel says that nobody has set it, or of which it says nothing."""
    monkeypatch.setattr(kernel_clock, "_adjtimex", lambda: answer)
    assert kernel_clock.synchronised() is known


def test_the_kernel_is_asked_and_nothing_is_set():
    """Lost: the machine's time."""
    before = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    assert kernel_clock._adjtimex() in range(-1, 6)
    assert time.time() - time.clock_gettime(time.CLOCK_MONOTONIC_RAW) == pytest.approx(before, abs=1)
