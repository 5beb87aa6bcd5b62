# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job templates and credential types of awx/, as Ansible understands them."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.awx import jobs


@pytest.fixture(scope="session")
def read(tmp_path_factory):
    return jobs.tables(tmp_path_factory.mktemp("tables"))
