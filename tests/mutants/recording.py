# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pytest plugin (`-p mutants.recording`): which test ran which line, and how long each took.

Coverage calls what it measures from here on by the test's name, in processes that the test starts as well; what the
tests took goes to times-PID.jsonl beside coverage's data, for those that passed.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path

import coverage
import pytest

CONFIG = "COVERAGE_PROCESS_CONFIG"


class Recording:
    def __init__(self, measuring):
        self.measuring = measuring
        self.folder = Path(measuring.config.data_file).parent
        self.seconds = 0.0
        self.passed = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.seconds, self.passed = 0.0, True
        self.measuring.switch_context(item.nodeid)
        if CONFIG in os.environ:
            os.environ[CONFIG] = named(os.environ[CONFIG], item.nodeid)
        result = yield
        self.measuring.switch_context("")
        if self.passed:
            with (self.folder / f"times-{os.getpid()}.jsonl").open("a") as times:
                times.write(json.dumps([item.nodeid, round(self.seconds, 3)]) + "\n")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        self.seconds += report.duration
        self.passed = self.passed and report.outcome == "passed"
        return report


def named(serialized, test):
    """Coverage's settings for processes to come, as it hands them on itself, with a name for what they measure."""
    settings = json.loads(base64.b64decode(serialized))
    return base64.b64encode(json.dumps(dict(settings, context=test)).encode()).decode()


class PatientSys:
    """Module sys as threads see it, with a settrace that waits for another thread's.

    An audit hook that is written in Python, such as kill points', lets other threads in while one installs its trace
    function. CPython 3.11 refuses theirs then, and a thread ends before it begins: who waits for it waits for ever.
    """

    WAIT = 30.0  # seconds

    def __getattr__(self, name):
        return getattr(sys, name)

    def settrace(self, function):
        end = time.monotonic() + self.WAIT
        while True:
            try:
                return sys.settrace(function)
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.001)


def pytest_configure(config):
    measuring = coverage.Coverage.current()
    if measuring is not None:
        threading._sys = PatientSys()
        config.pluginmanager.register(Recording(measuring))
