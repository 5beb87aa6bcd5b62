# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is read-only, as the kernel makes it where it finds errors. If these fail, nobody sees
who has what on the node just when its disk fails; or a verb does half of what it should.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile

SAID = "is on a file system that is read-only"


@pytest.fixture
def read_only(jackie):
    subprocess.run(["mount", "--bind", jackie.state, jackie.state], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", jackie.state], check=True)
    yield jackie
    subprocess.run(["umount", jackie.state], check=True)


def test_what_only_looks_works(read_only):
    """Lost: status, console and dry runs."""
    there = [board["instance"] for board in read_only.module("board_info", events=5)["boards"]]
    assert there == ["jackie", None]
    assert "read-only" not in read_only.module("board_console_info", board=0).get("msg", "")
    assert found(reconcile(read_only, check=True)) == []
    dry = read_only.module("tilera_boot", boards=[0], state="running", instance="jackie", check=True)
    assert not dry.get("failed")


def test_what_changes_something_is_refused_with_the_reason(read_only):
    """Lost: the truth about the disk; or her power, by a verb that cannot write down what it does."""
    before = read_only.outlets()
    for result in (
        reconcile(read_only),
        read_only.module("tilera_boot", boards=[0], state="stopped", keep=True),
        read_only.module("board_lease", instance="jackie", hours=1),
    ):
        assert (result.get("failed"), SAID in result["msg"], "dmesg" in result["msg"]) == (True, True, True), result
    assert read_only.outlets() == before
