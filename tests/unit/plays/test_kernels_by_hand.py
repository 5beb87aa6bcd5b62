# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a set-up does with what `hetero kernels` says. If these fail, a proxy node whose database is lost cannot be set
up again, and its boards get neither TFTP nor NFS; or a set-up is a success whose command is no more there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "tftp_proxy"
LOST = "hetero: /var/lib/hetero/state.db: is not there, and instances were made"
LED = "board3 gets /tftpboot/vmlinux_3, put there by hand from now on"
#: A /usr/local/sbin of this process and its children only.
APART = 'mount -t tmpfs tmpfs /usr/local/sbin && cp hetero /usr/local/sbin/ && exec "$@"'


@pytest.fixture
def set_up(tmp_path):
    """Run the role's tasks that call `hetero kernels`, which is played; (exit code, output, what the role shows)."""

    def run(rc, out="", err="", check=False, tools_changed=True):
        program, words = tmp_path / "hetero", "kernels --check" if check else "kernels"
        program.write_text(
            f"#!/bin/sh\n[ \"$*\" = '{words}' ] || exit 9\nprintf '{out}'\nprintf '{err}' >&2\nexit {rc}\n"
        )
        program.chmod(0o755)
        tasks = yaml.safe_load((ROLE / "tasks" / "tools.yml").read_text())[1:]
        (tmp_path / "kernels_dry_run.yml").write_text((ROLE / "tasks" / "kernels_dry_run.yml").read_text())
        of_role = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
        shown = of_role["_tftp_proxy_by_hand"]
        given = dict(_tftp_proxy_tools=dict(changed=tools_changed, by_hand=[]), _tftp_proxy_written=dict(by_hand=[]))
        given.update(_tftp_proxy_led=of_role["_tftp_proxy_led"], _tftp_proxy_consoles=[])
        given.update(ansible_python_interpreter=sys.executable, shown=shown)
        copy = dict(content="{{ shown | to_json }}", dest=str(tmp_path / "shown"))
        show = {"ansible.builtin.copy": copy, "check_mode": False}
        play = dict(hosts="localhost", connection="local", gather_facts=False, vars=given, tasks=[*tasks, show])
        (tmp_path / "play.json").write_text(json.dumps([play]))
        words = [sys.executable, "-m", "ansible.cli.playbook", "-i", "localhost,", "play.json", *["--check"] * check]
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", APART, "sh", *words]
        environment = dict(os.environ, ANSIBLE_STDOUT_CALLBACK="default", ANSIBLE_LOCAL_TEMP=str(tmp_path))
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        said = tmp_path / "shown"
        return done.returncode, done.stdout + done.stderr, json.loads(said.read_text()) if said.exists() else None

    return run


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ((0, f"{LED}\\n"), [f"by hand {LED}"]),
        ((1, "board3: cannot be read\\n"), ["by hand board3: cannot be read"]),
        ((1, "", f"{LOST}\\n"), [f"by hand boards are left as they are: {LOST}"]),
    ],
    ids=["led", "one board fails", "lost database"],
)
def test_a_set_up_goes_on_and_says_what_was_not_done(set_up, said, shown):
    rc, output, found = set_up(*said)
    assert (rc, found) == (0, shown), output


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_a_command_that_does_not_run_ends_the_set_up(set_up):
    rc, output, found = set_up(126)
    assert (rc, found) == (2, None), output


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_a_dry_run_leads_no_board_to_anything(set_up):
    """Lost: what a dry run is for; it changed what boards get."""
    assert set_up(0, f"{LED}\\n", check=True, tools_changed=False)[::2] == (0, [f"by hand {LED}"])
    # there is no command yet, or an older one
    assert set_up(9, check=True)[::2] == (0, [])
