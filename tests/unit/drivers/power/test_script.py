# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver command with scripts as users write them, which are real processes."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power

#: Keeps each outlet's state in a file, as a relay would.
SCRIPT = """\
#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >>calls
case $3 in
1) echo on >"outlet$2" ;;
2) echo off >"outlet$2" ;;
9) echo "outlet $2 of $1 is $(cat "outlet$2" 2>/dev/null || echo OFF)" ;;
*) exit 3 ;;
esac
"""


@pytest.fixture
def script(tmp_path):
    def write(text=SCRIPT, mode=0o755, **settings):
        path = tmp_path / "my_pdu"
        path.write_text(text)
        path.chmod(mode)
        return {"driver": "command", "script": str(path), "host": "10.0.100.9", "outlets": ["5", 6], **settings}

    return write


def batch(settings, folder, wanted, seconds=60.0, secrets=None, **options):
    deadline = Deadline(seconds)
    with power.session("pdu-t", settings, secrets or {}, deadline, str(folder)) as session:
        return power.set_outlets(session, wanted, deadline, **options)


def status(settings, folder, secrets=None, seconds=60.0):
    with power.session("pdu-t", settings, secrets or {}, Deadline(seconds), str(folder)) as session:
        return session.status()


def test_the_arguments_of_the_blueprint(script, tmp_path):
    """Without it, a site's own pdu_mgr of Nova's days would have to be written again."""
    seen = batch(script(), tmp_path, {"5": "on", "6": "cycled"})
    assert {outlet: (one["before"], one["after"]) for outlet, one in seen.items()} == {
        "5": ("off", "on"),
        "6": ("off", "on"),
    }
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [f"10.0.100.9 {rest}" for rest in ("5 9", "6 9", "5 1", "6 1", "5 9", "6 9")]
    batch(script(), tmp_path, {"6": "cycled"})
    assert [call[-3:] for call in (tmp_path / "calls").read_text().splitlines() if call.endswith(("1", "2"))][2:] == [
        "6 2",
        "6 1",
    ]


def test_a_script_without_a_host_gets_an_empty_one(script, tmp_path):
    """Lost: a site whose script knows by itself what it switches, and whose PDU would need a host that is made up."""
    text = SCRIPT.replace('echo "$@" >>calls', 'echo "$# <$1> $2 $3" >>calls')
    settings = script(text)
    del settings["host"]
    seen = batch(settings, tmp_path, {"5": "on"})
    assert (seen["5"]["before"], seen["5"]["after"]) == ("off", "on")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [f"3 <> {rest}" for rest in ("5 9", "6 9", "5 1", "5 9", "6 9")]


def test_success_that_is_none_is_found_out(script, tmp_path):
    """Without it, a script whose outcome nobody looks at, as the blueprint's, would hide power failures."""
    text = SCRIPT.replace('1) echo on >"outlet$2" ;;', "1) echo done ;;")
    with pytest.raises(power.OutletsFailed, match=r"outlet 5 of pdu-t: still off .*PDU said done"):
        batch(script(text), tmp_path, {"5": "on"}, window=0.2)


def test_a_script_that_fails(script, tmp_path):
    """Without it, the reason that the script gives would be lost."""
    text = SCRIPT.replace('1) echo on >"outlet$2" ;;', "1) echo no such relay >&2; exit 4 ;;")
    with pytest.raises(power.OutletsFailed, match=r"PDU said no such relay\): check what this account may do"):
        batch(script(text), tmp_path, {"5": "on"})


@pytest.mark.parametrize(
    ("body", "state"), [("echo on", "on"), ("echo Status: OFF; exit 2", "off"), ("echo off; echo x >&2", "off")]
)
def test_what_a_status_may_look_like(script, tmp_path, body, state):
    """Without it, a script that wraps a fence agent would not be understood."""
    assert status(script(f"#!/bin/sh\n{body}\n"), tmp_path) == {"5": state, "6": state}


@pytest.mark.parametrize("body", ["true", "echo on; exit 2", "echo on; exit 1", "echo 1 outlet"])
def test_a_status_that_says_nothing_is_no_state(script, tmp_path, body):
    """Without it, a script that does not know mode 9 would call each outlet on."""
    with pytest.raises(HeteroError, match=r"outlet 5 of pdu-t: .*let its last word be on or off for mode 9"):
        status(script(f"#!/bin/sh\n{body}\n"), tmp_path)


def test_credentials_by_standard_input(script, tmp_path):
    """Without it, a script would have to keep passwords itself, or show them in its arguments."""
    settings = script(f"#!/bin/sh\ncat >{tmp_path}/read; echo $@ >{tmp_path}/argv; echo on\n")
    status(settings, tmp_path, {"username": "u", "password": "p w", "community": None})
    assert (tmp_path / "read").read_text() == "username=u\npassword=p w\n"
    assert "p w" not in (tmp_path / "argv").read_text()


def test_a_script_that_hangs_ends_at_the_deadline(script, tmp_path):
    """Without it, one script would hold a play for ever."""
    begun = time.monotonic()
    with pytest.raises(TimedOut, match="did not end within"):
        status(script("#!/bin/sh\nsleep 60; echo on\n"), tmp_path, seconds=0.5)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"script": "my_pdu"}, BadInput, "'my_pdu' is no script"),
        ({"script": "/nowhere/my_pdu"}, HeteroError, "program /nowhere/my_pdu is not installed"),
        ({"mode": 0o644}, HeteroError, r"cannot be run \(Permission denied\)"),
        ({"host": "-x"}, BadInput, "'-x' is no host"),
        ({"outlets": []}, BadInput, "name its outlets"),
    ],
)
def test_a_script_that_cannot_be_run(script, tmp_path, change, error, words):
    """Without it, a missing script would be a traceback on the proxy."""
    with pytest.raises(error, match=words):
        status(script(**change), tmp_path)


def test_a_script_is_not_begun_when_the_time_is_up(script, tmp_path):
    """Lost: which time was up; a script that is ended at once may have sent half an order."""
    with pytest.raises(TimedOut, match="pdu-t: no time left to run its script: raise timeout"):
        status(script(), tmp_path, seconds=0)
    assert not (tmp_path / "calls").exists()
