# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""roles/slurm/files/set-up, as root, with folders of its own in place of the machine's. If these fail, Slurm's user has
no key, or root's files.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.conftest import PROGRAMS

#: The machine's folders are empty ones; `victim` is root's, and each run says what is in Slurm's user's folder.
RUN = """
set -e
for folder in /var/lib /var/log /etc/munge; do mount -t tmpfs -o mode=755 own $folder; done
printf key > /etc/munge/munge.key
printf 'a\\n@MUNGE_KEY@\\nb\\n' > /var/lib/node.sh
mkdir -m 755 /var/lib/victim
touch /var/lib/victim/file
set_up() {{ {program} slurm /var/lib/hetero /var/log/hetero /var/lib/node.sh; }}
{steps}
"""


def run(steps):
    script = RUN.format(program=PROGRAMS.parent / "set-up", steps=steps)
    argv = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_what_its_user_has_is_its_own_and_made_once():
    """Lost: munge's key, to all of the controller; plays, whose key ssh refuses; a second run that changes nothing."""
    steps = "umask 0; set_up; echo again; set_up; cat /var/lib/hetero/node.sh; cd /var/lib; ls -A hetero\n"
    paths = "hetero hetero/.ssh hetero/.ssh/id_ed25519 hetero/node.sh /var/log/hetero slurm/slurmctld"
    rc, lines, said = run(f"{steps}stat -c '%U %G %a %n' {paths}")
    assert (rc, said) == (0, "")
    assert lines[lines.index("again") + 1 :] == [
        *("a", "a2V5", "b", ".ssh", "node.sh"),
        "slurm slurm 700 hetero",
        "slurm slurm 700 hetero/.ssh",
        "slurm slurm 600 hetero/.ssh/id_ed25519",
        "slurm slurm 400 hetero/node.sh",
        "slurm slurm 750 /var/log/hetero",
        "slurm slurm 700 slurm/slurmctld",
    ]


@pytest.mark.parametrize(
    "link",
    [
        "rm -r hetero/.ssh; ln -s /var/lib/victim hetero/.ssh",
        "rm hetero/.ssh/*; ln -s /var/lib/victim/file hetero/.ssh/id_ed25519.pub",
        "chown slurm slurm; rm -r slurm/slurmctld; ln -s /var/lib/victim slurm/slurmctld",
    ],
)
def test_a_link_in_its_folder_leads_root_nowhere(link):
    """Lost: the controller, to who has become Slurm's user, when the playbook is run again."""
    steps = f"set_up; cd /var/lib; {link}; set_up || echo refused; stat -c '%U %a %s %n' victim victim/file"
    _rc, lines, said = run(steps)
    assert lines[-2].startswith("root 755 "), said
    assert lines[-1] == "root 644 0 victim/file"
