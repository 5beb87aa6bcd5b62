# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file in the folder of containers which shows that their file system is mounted. If this fails, a user who names
an instance as that file takes a host's GPUs and address for good: nobody can start or end it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import valid_instance


def test_no_instance_has_its_name():
    with pytest.raises(BadInput):
        valid_instance(folders.MARK)
