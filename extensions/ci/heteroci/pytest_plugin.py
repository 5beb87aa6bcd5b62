# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards for tests: fixture `board`, in pytest -p heteroci.pytest_plugin.

A board that does not come up is an error of the tests that ask for it, and no failed test. A report (--junitxml) has
each test's board and the phases of its boot as properties, and of a test that failed the console's last lines.
"""

from __future__ import annotations

import contextlib
import json
import os

import pytest

from . import endings
from .board import Request
from .endings import NoBoard
from .held import held
from .names import name_of

#: Lines of the console that a report has.
LINES = 40
#: Options of provision_instance that have one of pytest, too.
OPTIONS = {"flavor": "HETERO_FLAVOR", "image": "HETERO_IMAGE", "hours": "HETERO_HOURS", "wait": "HETERO_WAIT"}
BOARD, NONE = pytest.StashKey(), pytest.StashKey()


def pytest_addoption(parser):
    group = parser.getgroup("board", "boards of hetero.compute")
    for key, name in OPTIONS.items():
        group.addoption(f"--board-{key}", help=f"of tests that name none (or ${name})")
    parser.addini("board_scope", "how long a board is kept: session, module or function", default="session")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "board(flavor=NAME, …): which board the test gets; the options are those of provision_instance"
    )


class Boards:
    """The boards of a scope: one for each set of options, taken when the first test asks for it.

    :param scope: the scope's own name, which tells its boards from another's of the same job.
    """

    def __init__(self, config, scope, open_boards):
        self._config, self._scope, self._open = config, scope, open_boards
        self._boards, self._none = {}, {}

    def board(self, options):
        """Return the board of these options; raise NoBoard, at once where that was tried before."""
        wanted = {key: self._config.getoption(f"board_{key}") or os.environ.get(name) for key, name in OPTIONS.items()}
        wanted.update(options, owner=os.environ.get("HETERO_OWNER") or "ci")
        wanted = {key: str(value) for key, value in wanted.items() if value not in (None, "")}
        key = json.dumps(wanted, sort_keys=True)
        if key in self._none:
            raise self._none[key]
        if key not in self._boards:
            if "flavor" not in wanted:
                raise NoBoard(endings.REQUEST, "name a flavor: --board-flavor, or @pytest.mark.board(flavor=NAME)")
            worker = os.environ.get("PYTEST_XDIST_WORKER", "")
            part = f"{self._config.rootpath}-{worker}-{self._scope}-{key}"
            if os.environ.get("HETERO_NAME"):  # tells two pytests of one folder apart, side by side
                part = f"{os.environ['HETERO_NAME']} {part}"
            inventories = list(filter(None, os.environ.get("HETERO_INVENTORY", "").split(os.pathsep)))
            try:
                request = Request(name_of(os.environ, part), wanted, inventories)
                self._boards[key] = self._open.enter_context(held(request))
            except (NoBoard, OSError) as error:
                self._none[key] = endings.as_told(error)
                raise self._none[key] from None
        return self._boards[key]


def _scope(fixture_name, config):
    return config.getini("board_scope")


@pytest.fixture(scope=_scope)
def _boards(request):
    with contextlib.ExitStack() as open_boards:
        yield Boards(request.config, request.node.nodeid, open_boards)


@pytest.fixture
def board(request, _boards):
    """A board: `run` a command on it, `ssh()` has the words that log in, `address`, `node`, `phases`, `console()`."""
    marker, none = request.node.get_closest_marker("board"), None
    try:
        found = _boards.board(dict(marker.kwargs) if marker else {})
    except NoBoard as error:
        none = error
    if none is not None:  # not above, where a report would tell both, the one while the other is handled
        request.node.stash[NONE] = none
        pytest.fail(f"no board: {none}", pytrace=False)
    request.node.stash[BOARD] = found
    phases = ", ".join(f"{phase} {seconds} s" for phase, seconds in found.phases.items())
    one = dict(board=found.node, board_instance=found.environment["HETERO_INSTANCE"], board_address=found.address)
    request.node.user_properties.extend(dict(one, board_phases=phases).items())
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    none, found = item.stash.get(NONE, None), item.stash.get(BOARD, None)
    if none is not None and report.when == "setup":
        item.user_properties.append(("board_ending", none.ending))
        _attach(item, report, "\n".join(none.console))
    elif found is not None and report.when == "call":
        _attach(item, report, found.console(LINES))


def _attach(item, report, console):
    """Put the console's lines into what a person and what a program reads of a test."""
    if console:
        report.sections.append(("Console of the board", console))
        item.user_properties.append(("board_console", console))
