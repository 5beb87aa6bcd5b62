# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NFS server that tests of verbs play: what strict and warnings would say of it at each of its thousands of starts
is looked at here once. If this fails, a slip in it is a verb's fault in a hundred tests."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.ganesha import CALL
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import BUSCTL, put_busctl

ONE = {"path": "/a b/fs_0", "pseudo": "/tftpboot/fs_0", "clients": ["10.0.2.1"]}
NONE = {"path": "/x]y", "pseudo": "/p*", "clients": []}


def told(path):
    """What perl says of a program, all of its warnings being errors."""
    argv = ["perl", "-Mstrict", "-Mwarnings=FATAL,all", "-c", path]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600).stderr


def test_the_played_server_is_strict(tmp_path):
    assert told(BUSCTL) == f"{BUSCTL} syntax OK\n"
    (tmp_path / "slip.pl").write_text(BUSCTL.read_text() + "$exports[0] = $exprots[0];\n")
    assert "requires explicit package name" in told(tmp_path / "slip.pl")


@pytest.mark.parametrize(
    "text",
    [
        *map(json.dumps, [{}, {"7": ONE}, {"7": ONE, "12": NONE}, {"7": dict(ONE, path='/a"b')}, {"x": ONE}]),
        *map(json.dumps, [{"7": dict(ONE, clients=["10.0.2.1", "10.0.2.2"])}, {"7": 1}]),
        json.dumps({"7": ONE}) + "\n",
        json.dumps({"7": ONE}) + "\nmore",
        json.dumps({"7": ONE})[:-1],
        "",
        None,
    ],
)
def test_what_a_shell_answers_is_what_perl_answers(tmp_path, text):
    """Lost: hours, to a verb that is taken for wrong."""
    if text is not None:
        (tmp_path / "ganesha.json").write_text(text)
    put_busctl(tmp_path)
    whole = (tmp_path / "busctl").read_text()
    (tmp_path / "perl").write_text(whole[whole.index("#!/usr/bin/perl") :])
    (tmp_path / "perl").chmod(0o755)
    asked = [["DisplayExport", "q", number] for number in ("7", "12", "0")]
    for words in [["ShowExports"], *asked, ["DisplayExport", "q"], ["RemoveExport", "q", "8"], ["Nothing"]]:
        found = []
        for name in ("busctl", "perl"):
            env = dict(os.environ, FAKE_GANESHA=str(tmp_path / "ganesha.json"))
            done = subprocess.run(
                [tmp_path / name, *CALL[1:], *words], check=False, capture_output=True, text=True, env=env
            )
            found.append((done.returncode, done.stdout, re.sub(r" at \S+ line.*", "", done.stderr)))
        assert found[0] == found[1], words
