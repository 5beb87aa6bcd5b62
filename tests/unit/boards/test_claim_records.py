# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of claims beside the database."""

from __future__ import annotations

import os

from ansible_collections.hetero.compute.plugins.module_utils.boards import claim_records
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


def test_a_removed_record_stays_removed(tmp_path, monkeypatch):
    """Lost: a board, to an instance that was terminated before a power cut and whose record is there again."""
    synced = []
    monkeypatch.setattr(claim_records, "sync_folder", lambda folder: synced.append((folder, os.listdir(folder))))
    (tmp_path / "board0.json").write_text("{}")
    ClaimRecords(str(tmp_path)).remove(0)
    assert synced == [(str(tmp_path), [])]
