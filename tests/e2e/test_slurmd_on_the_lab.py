# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's own `srun` on boards of the lab, with the image that the guide builds (docs/docsite/rst/guide_slurm.rst). If
this fails, who queues a program for a board gets no board that runs it, or it runs there as somebody else.
"""

from __future__ import annotations

import shutil

import pytest
from labs import FLAVOR
from slurm_of_the_lab import LIMIT, PROXY, SlurmOfTheLab

pytestmark = [
    pytest.mark.skipif(not shutil.which("slurmctld"), reason="needs Debian's slurmctld: tools/setup test"),
    pytest.mark.long,
]

IMAGE = "bookworm-slurm"
#: The number of a site's first user, which cloud-init's own user has where an image has one.
FIRST = 1000
#: Seconds of a board that boots the whole of Debian under emulation, on a machine that does other things.
BOOT = 1200


@pytest.fixture(scope="module")
def archive(up, tmp_path_factory):
    """The image, as the guide's line builds it for the lab's boards, in the proxy node's store."""
    folder = tmp_path_factory.mktemp("images")
    named = dict(debian_image_name=IMAGE, debian_image_folder=folder, debian_image_arch="tilepro64")
    up.play("build_image", debian_image_slurm="true", **named)
    path = f"/srv/{IMAGE}.tar"
    up.on_proxy("mkdir -p /srv")
    key = ["-i", up.folder / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={up.folder}/ssh/known_hosts"]
    up.inside("scp", "-q", *key, folder / f"{IMAGE}.tar", f"root@{PROXY}:{path}")
    up.play("image", nodes="proxy1", image=IMAGE, src=path)
    yield IMAGE
    up.play("image", nodes="proxy1", image=IMAGE, state="absent")
    up.on_proxy(f"rm {path}")


@pytest.fixture
def slurm(lab, archive, tmp_path):
    made = SlurmOfTheLab(tmp_path, lab)
    users = [dict(name="ann", uid=FIRST, gid=FIRST)]
    try:
        made.set_up({"image": archive}, FIRST, boot_timeout=BOOT, slurm_node_users=users, slurm_resume_seconds=1800)
        yield made
    finally:
        made.down()


def test_srun_runs_a_program_on_each_of_its_boards_as_who_asked(slurm):
    """Lost: srun on boards; or a job of the site's first user as cloud-init's, in its groups."""
    who = "echo $(hostname) $(id -un) $(id -Gn) $HOME"
    rc, lines = slurm.lines("srun", "-N2", "-C", FLAVOR, "sh", "-c", who, user="ann")
    said = [line for _at, line in lines]
    assert rc == 0, "\n".join([*said, slurm.words()])
    assert sorted(said) == [f"tp64-{number} ann ann /home/ann" for number in (1, 2)]
    slurm.until(lambda: all("POWERED_DOWN" in slurm.node(f"tp64-{number}") for number in (1, 2)), LIMIT)
    assert slurm.lab.module("board_info")["claims"] == []
