# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virsh that does not answer in time. If these fail, an error names the rest of a deadline as all that virsh was
given, and the reader raises the wrong limit; or it blames libvirt where the guest did not end.

Tests hypervisors/libvirt/domain.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import domain as domains
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt


@pytest.fixture
def virsh(tmp_path, monkeypatch):
    """Write a virsh that says `running` so many times, and answers no more from then on."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def written(answers):
        path = tmp_path / "virsh"
        count = f"echo >> {tmp_path}/asked; [ $(wc -l < {tmp_path}/asked) -le {answers} ] || exec sleep 600"
        path.write_text(f"#!/bin/sh\ncase $* in *domstate*) {count}; echo running;; esac\n")
        path.chmod(0o755)

    return written


def test_a_call_that_got_the_rest_of_a_deadline_names_what_was_given_as_a_whole(virsh):
    """Lost: which limit to raise: "within 1 s" read as if virsh had had one second."""
    virsh(0)
    deadline = Deadline(0.25)
    with pytest.raises(TimedOut) as raised:
        Libvirt(deadline).domain("ml-8").state  # noqa: B018
    assert str(raised.value).startswith("domain ml-8: virsh domstate did not end (gave up after 0.25 s): see:")


def test_a_call_that_had_all_its_time_says_so(virsh, monkeypatch):
    """Lost: that it was virsh itself that hung, with time left."""
    virsh(0)
    monkeypatch.setattr(domains, "CALL_TIME", 0.5)
    with pytest.raises(TimedOut, match=r"virsh did not end within 0\.5 s"):
        Libvirt(Deadline(60)).domain("ml-8").state  # noqa: B018


@pytest.mark.parametrize(("whole", "timeout", "said"), [(60, 0.2, "within 0.2 s"), (1, 30, r"\(gave up after 1 s\)")])
def test_a_guest_that_does_not_end_is_what_is_said(virsh, whole, timeout, said):
    """Lost: that the guest ignored its power button; the last question, which the deadline cut off, was blamed.

    :param whole: seconds for all calls.
    :param timeout: seconds for the guest.
    """
    virsh(1 if whole < timeout else 1000)
    with pytest.raises(TimedOut, match=f"domain ml-8: its guest did not end {said}: does its init know"):
        Libvirt(Deadline(whole)).domain("ml-8").shutdown(timeout)


def test_a_virsh_that_never_answered_is_blamed_itself(virsh):
    """Lost: that nobody knows whether the guest ended: it was said that it had not."""
    virsh(0)
    with pytest.raises(TimedOut, match=r"virsh domstate did not end \(gave up after 0.25 s\)"):
        Libvirt(Deadline(0.25)).domain("ml-8").shutdown(0.2)
