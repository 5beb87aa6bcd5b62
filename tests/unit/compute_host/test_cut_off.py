# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verb on containers and guests whose play ends. If these fail, what was begun is left half done."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import HostConfig
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import askers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock


@pytest.fixture
def asker():
    """Who asked."""
    there = SimpleNamespace(is_gone=False, is_there=True)
    askers.asked_by(there)
    yield there
    askers.asked_by(None)


def held(folder):
    host = SimpleNamespace(config=HostConfig(run_folder=str(folder)), actor="jo")
    change = SimpleNamespace(check=False)
    claim = SimpleNamespace(instance="ml-8")
    return lifecycle.held(SimpleNamespace(host=host, change=change, claim=claim, report=print), "start", Deadline(5))


def test_an_instance_that_is_worked_on_gets_its_devices(tmp_path, asker):
    """Lost: the GPUs of a container that is made and running, whose play was ended while its image was unpacked."""
    with held(tmp_path):
        asker.is_gone = True
        with lock(str(tmp_path), "pci", "attach", "jo", Deadline(5)):
            pass


def test_an_instance_whose_turn_comes_too_late_is_not_touched(tmp_path, asker):
    """Lost: an instance that is stopped although nobody waits for that any more."""
    asker.is_gone = True
    with pytest.raises(Refused, match="instance-ml-8: nobody waits for it any more"), held(tmp_path):
        pass
