# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of pytest: the folder of a test that passed goes as the test ends; that of one that failed stays.

Until the end of a run of all tests they would have tens of gigabytes. Pytest's own way (tmp_path_retention_policy)
empties also what a test left mounted there, which may be anything of the machine.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.runner.folders import remove

PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.stash[PASSED] = report.passed and (report.when == "setup" or item.stash[PASSED])
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    """Remove it once all fixtures have ended what is theirs; a fixture that fails leaves it."""
    folder = (getattr(item, "funcargs", None) or {}).get("tmp_path")
    yield
    if folder and item.stash[PASSED]:
        remove(folder)
