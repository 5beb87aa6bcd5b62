# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a site's own drivers: who may have written there, and which drivers lie in it."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside import folder as outside
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside.source import POWER

TEXT = "POWER_API = 1\n"


@pytest.fixture
def drivers(tmp_path):
    """The folder, with driver acme in it."""
    folder = tmp_path / "site" / "drivers"
    folder.mkdir(parents=True)
    (tmp_path / "site").chmod(0o755)
    folder.chmod(0o755)
    (folder / "acme.py").write_text(TEXT)
    (folder / "acme.py").chmod(0o644)
    return folder


def test_a_driver_is_called_as_its_file(drivers):
    """Lost: a driver that lies on the node, and that no name leads to."""
    source = outside.find("acme", str(drivers))
    assert (source.name, source.path, source.text) == ("acme", str(drivers / "acme.py"), TEXT)
    assert outside.find("other", str(drivers)) is None
    assert outside.find("acme", str(drivers / "none")) is None
    assert outside.find("../acme", str(drivers / "x")) is None
    assert outside.names(POWER, str(drivers)) == ["acme"]
    assert outside.names("boot", str(drivers)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "acme.py").chmod(0o664), r"acme.py: others may write to it.*chmod go-w"),
        (lambda folder: (folder / "acme.py").chmod(0o646), r"acme.py: others may write to it"),
        (lambda folder: folder.chmod(0o775), r"drivers: others may write to it"),
        (lambda folder: folder.chmod(0o1777), r"drivers: others may write to it"),
        (lambda folder: folder.parent.chmod(0o757), r"site: others may write to it"),
        (lambda folder: linked(folder / "acme.py"), r"acme.py: is a link, and no driver is loaded by one"),
        (lambda folder: linked(folder / "."), r"drivers: is a link, and no driver is loaded by one"),
        (lambda folder: piped(folder / "acme.py"), r"acme.py: is a file of another kind"),
    ],
)
def test_what_others_may_have_written_is_never_run(drivers, change, words):
    """Lost: the node, to whoever may write to one of these: a driver runs as root."""
    change(drivers)
    with pytest.raises(Refused, match=words):
        outside.find("acme", str(drivers))
    assert outside.names(POWER, str(drivers)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="files of other accounts need root: run as root")
@pytest.mark.parametrize("whose", ["drivers/acme.py", "drivers", "."])
def test_what_belongs_to_another_account_is_never_run(drivers, whose):
    """Lost: the node, to an account of a service."""
    os.chown(drivers.parent / whose, 64003, -1)
    with pytest.raises(Refused, match=r"belongs to user 64003, .*: chown root:root"):
        outside.find("acme", str(drivers))


def test_a_name_that_two_files_have_is_neither(drivers):
    """Lost: which of two drivers switches a board, when it hangs on the order of a folder."""
    (drivers / "acme.json").write_text("{}")
    with pytest.raises(BadInput, match=r"acme.py and .*acme.json: are both driver acme: take one of them away"):
        outside.find("acme", str(drivers))


def test_one_whose_file_is_wrong_hides_no_other(drivers):
    """Lost: all of a site's drivers, for a slip in one."""
    (drivers / "broken.py").write_text("def\n")
    (drivers / "Odd Name.py").write_text(TEXT)
    (drivers / "notes.txt").write_text("nothing")
    assert outside.names(POWER, str(drivers)) == ["acme"]
    with pytest.raises(HeteroError, match=r"broken.py: is no Python of node .+: line 1: invalid syntax"):
        outside.find("broken", str(drivers))


def linked(path):
    """What lay at the path lies elsewhere, with a link to it in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path):
    path.unlink()
    os.mkfifo(path, 0o644)
