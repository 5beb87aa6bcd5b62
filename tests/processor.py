# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of pytest: which tests, and which folders of them, took most of the processor.

Beside other tests the time by the clock (`--durations`) says how long each waited, not what it cost. Counted is what
its process took, and those that it started and waited for; a daemon that it only killed is nobody's.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

#: So many tests are told.
TOLD = 40
#: Less than so many seconds of a folder are not told.
LITTLE = 1.0
READ = pytest.StashKey[float]()


def spent():
    """Seconds of the processor by now."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[READ] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """A report, which xdist hands on with all that it has, brings along what its part of the test took."""
    report = yield
    now = spent()
    report.processor, item.stash[READ] = now - item.stash[READ], now
    return report


def pytest_terminal_summary(terminalreporter):
    tests, folders = Counter(), Counter()
    for report in [report for reports in terminalreporter.stats.values() for report in reports]:
        seconds = getattr(report, "processor", 0.0)
        if seconds:
            tests[report.nodeid] += seconds
            folders[os.path.dirname(report.nodeid.partition("::")[0])] += seconds
    for what, costs, least in (("tests", tests.most_common(TOLD), 0.0), ("folders", folders.most_common(), LITTLE)):
        terminalreporter.section(f"seconds of the processor: {what}")
        for name, seconds in costs:
            if seconds >= least:
                terminalreporter.write_line(f"{seconds:7.2f} {name}")
