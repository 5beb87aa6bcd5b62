# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU host of which a stranger is root, and whose container's console is asked for. If it fails, that host says to
Ansible what no node may (guide_security: "A verb gives a node nothing but its request").
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR
from ansible_collections.hetero.compute.tests.unit.plays.test_both_kinds import claim

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

STRANGER = "ProxyCommand sh -c 'touch taken'"
#: Runs what it is given, but for Ansible's own module stat, in whose place it says the stranger's words.
PYTHON = """#!/bin/sh
[ $# -gt 0 ] || { set -- /tmp/given.$$; cat > $1; }
for word; do grep -q "ansible.modules.stat\\|AnsiballZ_stat" "$word" 2> /dev/null && { cat /lie; exit; }; done
exec /usr/bin/python3.11 "$@"
"""


def lies(host, **words):
    python = host.root / "usr" / "bin" / "python3"
    python.unlink()
    python.write_text(PYTHON)
    python.chmod(0o755)
    (host.root / "lie").write_text(json.dumps(dict(words, changed=False, stat=dict(exists=True, size=5))))


def test_a_console_gives_a_node_no_word_to_ansible(both_kinds, tmp_path):
    """Lost: what AWX keeps as a job's artifacts, and gives to the next jobs of a workflow as variables; and where facts
    are cached (fact_caching, or "enable fact storage" of a job template) the controller, by what ssh of a later
    instance runs.
    """
    _proxy, host, plays = both_kinds
    plays.env.update(
        ANSIBLE_SHOW_CUSTOM_STATS="true",
        ANSIBLE_CACHE_PLUGIN="jsonfile",
        ANSIBLE_CACHE_PLUGIN_CONNECTION=str(tmp_path / "cache"),
    )
    claim(host, "ml-7", "jo")
    lies(
        host,
        ansible_facts=dict(hetero_ssh_options=[STRANGER]),
        ansible_stats=dict(data=dict(owner="STRANGER")),
    )
    rc, first = plays.play("console", instance="ml-7")
    assert rc == 0, first
    ways = tmp_path / "ways"
    rc, second = plays.play("provision_instance", instance="mine", flavor=FLAVOR, hetero_ssh_folder=ways)
    assert rc == 0, second
    given = (ways / "mine").read_text()
    assert ("STRANGER" in first, STRANGER in given) == (False, False), first + given


def test_what_it_says_of_a_console_does_nothing_to_the_terminal(both_kinds):
    """Lost: the terminal of whoever asks for a console."""
    _proxy, host, plays = both_kinds
    claim(host, "ml-7", "jo")
    lies(host, warnings=["\x1b]0;taken\x07\x1b[2J"])
    _rc, output = plays.play("console", instance="ml-7")
    assert "\x1b" not in output, [line for line in output.splitlines() if "\x1b" in line]


def test_an_answer_without_end_of_a_console_is_not_read_to_its_end(both_kinds):
    """Lost: the controller's memory, with all that runs there."""
    _proxy, host, plays = both_kinds
    claim(host, "ml-7", "jo")
    lies(host, more="x" * (150 << 20))
    process, most = plays.start("console", instance="ml-7"), 0
    while process.poll() is None:
        with suppress(OSError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            most = max([most, *(int(kib) << 10 for kib in re.findall(r"VmHWM:\s+(\d+)", status))])
        time.sleep(0.1)
    _rc, output = plays.end(process)
    assert most < 400 << 20, f"{most >> 20} MiB of the play's own process"
