# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command slurm-board, with programs in place of scontrol and ssh. If this fails, who has a job does not reach its
board, or reaches another's.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

WAY = "ssh root@10.0.2.4 ssh-ed25519 AAAAhost"
SCONTROL = """#!/bin/sh
case "$1 $2 $3" in
"show hostnames tp64-[1-2]") printf 'tp64-1\\ntp64-2\\n' ;;
"show hostnames "*) echo "$3" ;;
"--oneliner show node") echo "NodeName=$4 State=ALLOCATED Reason=x Comment={comment}" ;;
esac
"""


def board(folder, *words, comment):
    for name, text in (("scontrol", SCONTROL.replace("{comment}", comment)), ("ssh", '#!/bin/sh\necho "$@"\n')):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    argv = ["sh", ROOT / "roles" / "slurm" / "files" / "slurm-board", *words]
    env = dict(PATH=f"{folder}:{os.environ['PATH']}")
    done = subprocess.run(argv, check=False, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_it_logs_in_by_the_host_key_that_slurm_has(tmp_path):
    """Lost: the login; or a password or a file, given to another machine at that address."""
    rc, out, said = board(tmp_path, "tp64-1", "uname", "-m", comment=f"tp64-1 is on board3: {WAY}")
    assert (rc, said) == (0, "")
    assert "StrictHostKeyChecking=yes" in out
    assert "KnownHostsCommand=/usr/bin/echo 10.0.2.4 ssh-ed25519 AAAAhost root@10.0.2.4 uname -m" in out


@pytest.mark.parametrize("comment", ["tp64-1 is on board3: nobody's job", ""])
def test_it_says_why_there_is_no_login(tmp_path, comment):
    """Lost: why, in the only place where the user looks."""
    rc, out, said = board(tmp_path, "tp64-1", comment=comment)
    assert (rc, out, said) == (1, "", f"tp64-1: no login: {comment or 'it has no board'}\n")


def test_the_nodes_of_a_gang_are_one_login_each(tmp_path):
    """Lost: salloc -N2, whose $SLURM_JOB_NODELIST is all of its nodes, and ssh took two addresses for one."""
    rc, out, said = board(tmp_path, "tp64-[1-2]", "uname", comment=f"tp64-1 is on board3: {WAY}")
    assert (rc, out) == (1, "")
    assert said == "tp64-[1-2] is several nodes, and a login is on one: give one of tp64-1 tp64-2\n"
