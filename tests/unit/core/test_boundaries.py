# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where text leaves the collection, it is printable, whoever said it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store as HostStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import background, job
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.module import run
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import as_text, outcome

SAID = "a\x1b[2J\x9b\u202eb"
SHOWN = r"a\x1b[2J\x9b\u202eb"


class Ended(Exception):
    pass


class Module:
    """What run() uses of an AnsibleModule."""

    params, check_mode = {}, False

    def exit_json(self, **result):
        self.result = result
        raise Ended

    def fail_json(self, **result):
        self.exit_json(**result)


def done(work):
    module = Module()
    with pytest.raises(Ended):
        run(module, work)
    return module.result


def test_a_warning_is_no_part_of_a_result():
    """Lost: a lost database's warning, beside Ansible's own that results are not to have any, and at last for that."""
    module = Module()
    module.warned = []
    module.warn = module.warned.append
    with pytest.raises(Ended):
        run(module, lambda params, check: dict(changed=True, warnings=["state.db: is not there", SAID]))
    assert (module.result, module.warned) == (dict(changed=True), ["state.db: is not there", SHOWN])


def fail(*_given):
    raise HeteroError(SAID, "board0", "look at it", screen=SAID)


def test_results_and_errors_of_modules():
    """Lost: what a board said, in a result, a diff or an error, acts on the terminal or in AWX's page."""
    result = done(lambda params, check: dict(changed=False, diff=[dict(after=SAID)], lines=[dict(text=SAID)]))
    assert result == dict(changed=False, diff=[dict(after=SHOWN)], lines=[dict(text=SHOWN)])
    failed = done(fail)
    assert failed["msg"] == f"board0: {SHOWN}: look at it"
    assert (failed["failure"]["what"], failed["failure"]["screen"]) == (SHOWN, SHOWN)
    assert done(lambda params, check: dict(failed=True, msg=SAID))["msg"] == SHOWN


@pytest.mark.parametrize("work", [lambda: dict(changed=False, said=SAID), fail])
def test_results_of_work_in_the_background(monkeypatch, capfd, work):
    """Lost: the same, for the modules that are followed."""
    monkeypatch.setattr(job, "detach", lambda folder: None)

    def end(code):
        raise Ended

    monkeypatch.setattr(background.os, "_exit", end)
    with pytest.raises(Ended):
        job.in_background(Module(), lambda: ("", {}), work)
    assert json.dumps(SHOWN)[1:-1] in capfd.readouterr().out


def test_events_are_kept_printable(tmp_path):
    """Lost: whoever reads the database by hand sees what a board makes of the terminal."""
    with Store(str(tmp_path / "proxy.db")) as store:
        store.event(0, "error", f"{SAID}\nmore")
        assert store.newest_events(0, 1)[0].text == f"{SHOWN}\nmore"
    with HostStore(str(tmp_path / "host.db")) as store:
        store.event("ml-7", "error", SAID)
        assert store.newest_events("ml-7", 1)[0].text == SHOWN


def test_lines_of_a_play():
    """Lost: an older proxy's events act on the terminal, or what one says goes on with a line that looks like ours."""
    line = dict(instance="jackie", node="board0", phase="error", text=f"{SAID}\vx\ny", seconds=None)
    assert as_text(line) == rf"jackie  board0  error     {SHOWN}\x0bx"
    assert as_text("  kernel\nvictim is running on board1") == r"  kernel\x0avictim is running on board1"
    assert outcome(f"Traceback\n{SAID}")["msg"].count(SHOWN) == 1
