# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links in the places of instances' data, and the ways that are printed: none takes what another instance has."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.links import must_be_no_link
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed


@pytest.fixture
def place(tmp_path):
    """The folders of a and b, and one of a bigger disk."""
    for name in ("place/a", "place/b", "big"):
        (tmp_path / name).mkdir(parents=True)
    for name in "ab":
        (tmp_path / "place" / name / "disk").write_text(f"{name}'s")
    return tmp_path / "place"


def said(place, name="a"):
    with pytest.raises(Refused) as refused:
        must_be_no_link(str(place / name), str(place / name / "disk"))
    return str(refused.value)


def test_what_is_ones_own_alone_is_put_back_as_printed(place, tmp_path):
    """Lost: the way back for an instance whose disk was moved to a bigger one, as others' were."""
    for name in "ab":
        (place / name / "disk").rename(tmp_path / "big" / name)
        (place / name / "disk").symlink_to(tmp_path / "big" / name)
    for name in "ab":
        assert followed(said(place, name))
        must_be_no_link(str(place / name), str(place / name / "disk"))
        assert (place / name / "disk").read_text() == f"{name}'s"


@pytest.mark.parametrize("to", ["place/b/disk", "place/b", "place"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_nobody_is_told_to_move_what_lies_in_anothers_folder(place, tmp_path, to, is_folder):
    """Lost: b's disk, which becomes a's as it is printed, and goes with a's end."""
    link = place / "a" if is_folder else place / "a/disk"
    link.rename(tmp_path / "before")
    link.symlink_to(tmp_path / to)
    told = said(place)
    assert f"that lies in {place / 'b'}, or a link there leads to it as well" in told
    assert "mv" not in told
    assert "remove the link alone" in told


def test_nobody_is_told_to_move_the_place_of_all(place, tmp_path):
    """Lost: the link, by a way whose second step cannot be."""
    (place / "b").rename(tmp_path / "before")
    (place / "a/disk").rename(tmp_path / "big/a")
    (place / "a/disk").symlink_to(place)
    assert "mv" not in said(place)


@pytest.mark.parametrize("part", ["", "/disk"], ids=["folder", "file"])
@pytest.mark.parametrize("above", [False, True])
def test_nobody_is_told_to_move_what_anothers_link_leads_to(place, tmp_path, part, above):
    """Lost: b's disk, which goes with a's end; with it all that lies beside it, where a's link leads to its folder."""
    os.rename(f"{place}/a{part}", tmp_path / "big/one")
    os.rename(f"{place}/b{part}", tmp_path / "before")
    os.symlink(tmp_path / ("big" if above else "big/one"), f"{place}/a{part}")
    os.symlink(tmp_path / "big/one", f"{place}/b{part}")
    for name in "ab":
        assert "mv" not in said(place, name)
    subprocess.run(re.search(r"\((rm .*?)\)", said(place, "b"))[1], shell=True, check=True)  # a's, by a person's word
    assert f"cp -aT {tmp_path}/big" in said(place)
