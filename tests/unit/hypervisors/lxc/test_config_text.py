# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's configuration, whatever lies in its place. If these fail, a verb waits for a pipe for ever, or takes a
folder that somebody has for nobody's.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import config_text


def test_the_text_also_where_it_is_no_text(tmp_path):
    """Lost: a container, to one odd byte in a comment."""
    (tmp_path / "config").write_bytes(b"# \xff\nlxc.arch = x86_64\n")
    assert config_text.text_of(str(tmp_path / "config")) == "# \udcff\nlxc.arch = x86_64\n"
    (tmp_path / "link").symlink_to("config")
    assert config_text.text_of(str(tmp_path / "link")).startswith("# ")


def test_no_file_is_no_container(tmp_path):
    """Lost: an answer for folders that are no containers."""
    (tmp_path / "a").touch()
    assert config_text.text_of(str(tmp_path / "config")) is None
    assert config_text.text_of(str(tmp_path / "a" / "config")) is None


@pytest.mark.parametrize("lay", [os.mkdir, os.mkfifo, lambda path: os.symlink(path, path)])
def test_anything_else_is_refused_at_once(tmp_path, lay):
    """Lost: the verb; or the root beside it, which counts as nobody's."""
    path = str(tmp_path / "config")
    lay(path)
    with pytest.raises(Refused, match="cannot be read as a container's configuration"):
        config_text.text_of(path)


def test_a_huge_one_is_refused(tmp_path):
    """Lost: the host's memory."""
    path = tmp_path / "config"
    path.write_text("x" * config_text.MOST)
    assert len(config_text.text_of(str(path))) == config_text.MOST
    path.write_text("x" * (config_text.MOST + 1))
    with pytest.raises(Refused, match=f"it has more than {config_text.MOST} bytes"):
        config_text.text_of(str(path))
