# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container runs by a path, where its root is no folder of its own. If these fail, ordinary verbs refuse a
container on an overlay, a device or a pool; or what was made in place of one that runs counts as that.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity


@pytest.mark.parametrize(
    ("began", "configured", "another_without_id", "another"),
    [
        ("/", "/elsewhere", False, False),
        ("/etc", "/etc", True, True),
        ("/etc:/var", "/etc:/var", False, False),
        ("/etc:/none", "/etc:/none", True, False),
        ("/etc:/var", "/etc", True, False),
        ("/dev/null", "/dev/null", False, False),
        ("/none", "/none", True, False),
        ("pool/box", "pool/box", False, False),
        ("pool/box", "/etc", True, False),
        ("", "", False, False),
    ],
)
def test_by_the_root_of_its_start(monkeypatch, began, configured, another_without_id, another):
    box = SimpleNamespace(running_item=lambda key: began, get=lambda key: configured)
    monkeypatch.setattr(identity, "includes", lambda box: True)
    monkeypatch.setattr(identity, "key_of", lambda box: None)
    assert identity.runs_another(box, os.getpid()) is another_without_id
    monkeypatch.setattr(identity, "key_of", lambda box: "/lxc/box#1")
    assert identity.runs_another(box, os.getpid()) is another


def test_one_that_ended_meanwhile_is_no_other():
    box = SimpleNamespace(running_item=lambda key: "/etc", get=lambda key: "/etc")
    assert not identity.runs_another(box, 1 << 30)
