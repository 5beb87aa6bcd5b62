# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root on a board sends nfs-ganesha names with / in them, and leaves its root by them: what the security guide says is
not defended. tests/e2e/test_nfsd.py does the same to a kernel's server, which refuses them.
"""

from __future__ import annotations

import re

import pytest
from forging import MARKER, slashed_names
from labs import ROOT

GUIDE = ROOT / "docs" / "docsite" / "rst" / "guide_security.rst"


@pytest.mark.long
def test_by_ganesha_a_board_reads_and_writes_the_proxys_files(two):
    """Lost: nothing that is promised. The day that an nfs-ganesha refuses these names, this fails: then correct the
    guide, option tftp_proxy_exports and what each set-up says of nfs-ganesha, and demand here that they are refused.
    """
    said, made = slashed_names(two, "mallory", "/tftpboot/fs_0")
    assert said[0] == "works", f"this shows nothing: {said}"
    assert f"read ../../../secret: {MARKER}-proxy" in said, said
    assert "served CREATE" in said, said
    assert made, "it made nothing in the state folder"
    undefended = GUIDE.read_text().partition("What is not defended\n")[2]
    assert re.search(r"nfs-ganesha[^-]*reads and writes all", undefended)
    print(f"served: {sum(line.startswith('served') for line in said)} of {len(said)}; left there: {made}")
