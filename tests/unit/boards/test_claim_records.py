# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of claims beside the database."""

from __future__ import annotations

import os

from ansible_collections.hetero.compute.plugins.module_utils.boards.claim_records import ClaimRecords


def test_what_a_killed_writer_left_goes_with_the_file(tmp_path):
    """Lost: half a claim of an instance that is no more, kept for ever where roots and claims are backed up from."""
    records = ClaimRecords(str(tmp_path))
    (tmp_path / "board0.json").write_text("{}")
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    (tmp_path / f".board0.json.{gone}~").write_text("half a claim")
    (tmp_path / f".board0.json.{os.getppid()}~").write_text("of one that still writes")
    records.remove(0)
    assert os.listdir(tmp_path) == [f".board0.json.{os.getppid()}~"]
