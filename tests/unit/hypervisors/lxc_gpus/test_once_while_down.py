# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module lxc_gpu_attach with persistent: false, of a container that does not run. If this fails, it says that
the container gets the GPU at its next start, and no start gives it: nobody has it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def test_it_is_refused_until_it_runs(host):
    box = host.boxes.make(name="box", start=False)
    for check in (True, False):
        with pytest.raises(Refused, match="does not run, and would have them for this run alone"):
            host.attach(box, gpus=ADDRESSES[:1], persistent=False, check=check)
    box.start(30)
    host.attach(box, gpus=ADDRESSES[:1], persistent=False)
    assert host.can_open(box) == ADDRESSES[:1]
