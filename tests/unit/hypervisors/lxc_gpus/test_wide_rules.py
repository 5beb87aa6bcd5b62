# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a reconcile closes what a container was not given. Real containers are in tests/unit/hypervisors/lxc_gpus."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.nodes import DeviceNode
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import gpu_reconciliation


def node(minor):
    return DeviceNode(f"/dev/nvidia{minor}", "c", 195, minor)


def cgroup(done, *wide):
    rules = [parse(text) for text in wide]
    v1 = SimpleNamespace(wider=lambda rule: rules, remove=lambda rule: done.append(f"remove {rule}"))
    return SimpleNamespace(v1=v1, allow_v1=lambda rule: done.append(f"allow {rule}"))


def test_the_rule_that_opens_a_gpu_goes_after_what_was_given_has_its_own():
    """Lost: a GPU stays open that was not given, or the container's own is closed to its program on the way."""
    done = []
    gpu_reconciliation._deny_wide(cgroup(done, "c 195:* rwm"), [node(1)], [node(0), node(255)])
    assert done == ["allow c 195:0 rw", "allow c 195:255 rw", "remove c 195:* rw"]


@pytest.mark.parametrize("wide", ["a", "c *:* rwm", "c *:1 rw"])
def test_a_rule_that_opens_other_drivers_devices_is_left_alone(wide):
    """Lost: the container's disks and terminals, with the GPU that it was not given."""
    done = []
    gpu_reconciliation._deny_wide(cgroup(done, wide), [node(1)], [node(0)])
    assert done == []
    gpu_reconciliation._deny_wide(SimpleNamespace(v1=None), [node(1)], [node(0)])


@pytest.mark.parametrize("used", [False, True])
def test_what_is_found_open_is_closed_unless_somebody_uses_it(monkeypatch, used):
    """Lost: a program's GPU under its hands; or the repair does half of what closes a device."""
    done, noted = [], []

    def refuse(container, group, nodes, paths):
        done.append(("users", nodes))
        if used:
            raise Refused("is used", "container ml", "end it first")

    monkeypatch.setattr(gpu_reconciliation.gpu_users, "refuse_users", refuse)
    monkeypatch.setattr(gpu_reconciliation.gpu_users, "let_go", lambda *words: done.append(("let go", *words[2:])))
    monkeypatch.setattr(gpu_reconciliation, "_deny_wide", lambda group, nodes, kept: done.append(("rule", nodes, kept)))
    running = SimpleNamespace(container="ml", pid=7, cgroup="its", take=lambda nodes: done.append(("take", nodes)))
    store = SimpleNamespace(transaction=nullcontext)
    site = SimpleNamespace(paths="here", found=SimpleNamespace(gpus=[]), store=store)
    look = SimpleNamespace(site=site, deadline="soon", note=lambda *words: noted.append(words))
    gpu_reconciliation._close(look, running, "not allocated", "why", "0000:05:00.0", ["node"], ["own"])
    ((*words, mend),) = noted
    assert words == ["not allocated", "why", "ml", "0000:05:00.0", "closed"]
    assert done == []
    if used:
        with pytest.raises(Refused):
            mend()
        assert done == [("users", ["node"])]
    else:
        mend()
        closed = [("users", ["node"]), ("rule", ["node"], ["own"]), ("take", ["node"])]
        assert done == [*closed, ("let go", ["node"], "fail", "soon", "here")]


@pytest.mark.parametrize(
    ("allowed", "node", "said"),
    [
        (True, True, "is allowed and there"),
        (False, True, "is denied and there"),
        (True, False, "is allowed and not there"),
    ],
)
def test_what_was_wrong_is_said(allowed, node, said):
    """Lost: what a container lacked, to who reads what reconcile mended."""
    assert gpu_reconciliation._words(dict(allowed=allowed, node=node)) == said
