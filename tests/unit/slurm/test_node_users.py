# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The users that a root gets as it becomes a node of Slurm, made by the system's own programs in a root whose /etc and
/home are a layer of this test's own. If these fail, jobs run as who asked for others.
"""

from __future__ import annotations

import subprocess

import jinja2
import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

ANN = dict(name="ann", uid=59000, gid=59000)
#: A layer over this machine's /etc, whose users are there as in any image.
LAYERS = """set -eu
mount -t tmpfs none {folder}
mkdir {folder}/etc {folder}/work
mount -t overlay -o lowerdir=/etc,upperdir={folder}/etc,workdir={folder}/work none /etc
mount -t tmpfs none /home
"""


def become_a_node(folder, users, image=":"):
    """Make the users as node.sh does, where the image's root has done `image`: what was said, and what they are."""
    template = (ROOT / "roles" / "slurm" / "templates" / "node.sh.j2").read_text()
    begun, _nothing, _rest = template.partition("base64 -d")
    made = begun[begun.index("refuse()") :]
    environment = jinja2.Environment(autoescape=False)
    environment.filters["quote"] = "'{}'".format
    code = environment.from_string(made).render(slurm_node_users=users)
    folder.mkdir()
    script = f"{LAYERS.format(folder=folder)}{image}\n{code}\ngetent passwd ann; id -Gn ann; stat -c %U /home/ann"
    argv = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_they_are_made_once_with_their_numbers_and_a_home(tmp_path):
    """Lost: jobs of people whom the image does not know, or a boot that fails as it knows them already."""
    made = ["ann:x:59000:59000::/home/ann:/bin/bash", "ann", "ann"]
    assert become_a_node(tmp_path / "new", [ANN]) == (0, made, "")
    known = "groupadd --gid 59000 ann; useradd --uid 59000 --gid 59000 -s /bin/bash --create-home ann"
    assert become_a_node(tmp_path / "known", [ANN], known) == (0, made, "")


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("useradd --uid 59000 debian", "uid 59000 is debian's in the image, and ann has it in slurm_node_users"),
        ("useradd --uid 59001 ann", "the image's user ann has uid 59001, and 59000 in slurm_node_users"),
    ],
)
def test_nobody_runs_jobs_as_another_user(tmp_path, image, why):
    """Lost: jobs that run as a user of the image, with its groups and its home, such as cloud-init's own."""
    rc, lines, said = become_a_node(tmp_path / "root", [ANN], image)
    assert (rc, lines, said) == (1, [], f"hetero-slurm: {why}: this node takes no jobs\n")


def test_the_image_for_slurm_has_no_user_of_cloud_init():
    """Lost: the first of a site's users, whose number cloud-init's own user has (cc_users_groups, `users: []`)."""
    files = ROOT / "roles" / "debian_image" / "files"
    assert yaml.safe_load((files / "slurm.cfg").read_text()) == {"users": []}
    (put,) = [line for line in (files / "customize.sh").read_text().splitlines() if "slurm.cfg" in line]
    assert put.strip() == 'install -D -m 644 "$here/slurm.cfg" "$root/etc/cloud/cloud.cfg.d/91-hetero-slurm.cfg"'
