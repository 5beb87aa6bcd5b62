# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide for sites that move over. If these fail, who goes back does not have again what was there before."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "docsite" / "rst" / "guide_moving_over.rst").read_text()
#: The lines of "Go back" that give files their names again, the units that it ends, and the line that removes others.
LOOP = re.search(r"^   (for file in .*?^   done)$", GUIDE, re.MULTILINE | re.DOTALL)[1]
UNITS = re.search(r"^   for unit in (.*?); do$", GUIDE, re.MULTILINE | re.DOTALL)[1].replace("\\", "").split()
REMOVED = re.search(r"^   rm (.*)$", GUIDE, re.MULTILINE)[1].split()
ROLE = yaml.safe_load((ROOT / "roles" / "tftp_proxy" / "vars" / "main.yml").read_text())


def written():
    """Paths of the files that the role writes with the kernel's NFS server, and of its commands."""
    files = ROLE["_tftp_proxy_files"] + ROLE["_tftp_proxy_nfs"]["nfsd"]["files"]
    return [file["path"].replace("{{ tftp_proxy_tftp_root }}", "/tftpboot") for file in files] + ["/tftpboot/pdu_mgr"]


def test_what_stayed_under_another_name_has_its_own_again(tmp_path):
    """Lost: boot loaders and scripts of a site's own, which boards ask for again."""
    theirs = [path for path in written() if path.startswith(("/tftpboot/", "/etc/xinetd.d/"))]
    assert len(theirs) > 5
    for path in theirs[1:]:
        place = Path(f"{tmp_path}{path}.by-hand")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("theirs")
    first = Path(f"{tmp_path}{theirs[0]}.by-hand")
    first.parent.mkdir(parents=True, exist_ok=True)
    first.symlink_to("/nowhere")
    script = re.sub(r" (?=/(tftpboot|etc)/)", f" {tmp_path}", LOOP)
    for _again in range(2):
        subprocess.run(["sh", "-ec", script], check=True)
    assert [path for path in theirs if not os.path.lexists(f"{tmp_path}{path}")] == []
    assert Path(f"{tmp_path}{theirs[1]}").read_text() == "theirs"


def test_what_the_role_adds_to_services_of_others_is_removed():
    """Lost: an xinetd and an NFS server that run as they did before."""
    ours = [path for path in written() if re.search(r"\.service\.d/|/nfs\.conf\.d/", path)]
    assert len(ours) == 3
    assert sorted({*REMOVED}) == sorted([*ours, "/etc/hetero/proxy.json"])


def test_no_unit_of_the_role_is_left():
    """Lost: serial lines of consoles, or the port of a web server, to the site's own programs; and boards that are
    checked go on being switched.
    """
    ours = re.findall(r"'(hetero-[a-z-]+\.(?:service|timer))':", ROLE["_tftp_proxy_units"])
    assert len(ours) > 6
    assert sorted(UNITS) == sorted(ours)
