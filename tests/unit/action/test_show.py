# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play says last. If these fail, people see no farewell, or a job's artifacts lack what it made."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.action import show as action


@pytest.fixture
def show(monkeypatch):
    """A function that runs the task; it returns (the lines that people saw, the result)."""

    def run(check=False, **args):
        lines = []
        monkeypatch.setattr(action, "tell", lines.append)
        task = SimpleNamespace(args=args, async_val=0, check_mode=check, action="hetero.compute.show")
        shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        return lines, action.ActionModule(task, shell, None, None, None, None).run(None, {})

    return run


def test_lines_alone_give_no_statistics(show):
    lines, result = show(lines=["jackie is running on board0"])
    assert lines == ["jackie is running on board0"]
    assert (result["changed"], "ansible_stats" in result) == (False, False)


def test_a_line_is_shown_whole(show):
    """A status as JSON is one line: cut off, nothing reads it. Control characters in it are shown and not obeyed."""
    assert show(lines=["x" * 100_000, "a\nb\x1b[2J"])[0] == ["x" * 100_000, "a\\x0ab\\x1b[2J"]


def test_statistics_are_given_as_set_stats_gives_them(show):
    """Not of a host: AWX keeps those of the whole job only."""
    _lines, result = show(lines=[], stats={"hetero_instances": [{"instance": "jackie"}]})
    given = dict(data={"hetero_instances": [{"instance": "jackie"}]}, per_host=False, aggregate=True)
    assert result["ansible_stats"] == given


def test_files_are_written_whole_with_the_permissions_that_were_asked_for(show, tmp_path):
    """Lost: a page half of which is an hour old; or who has what, to every user of the controller."""
    page, kept = tmp_path / "boards.html", tmp_path / "p1.json"
    page.write_text("old")
    assert show(files={str(page): "<p>ä\n"})[1]["changed"] is False
    show(files={str(kept): "{}"}, mode="0600")
    assert (page.read_text(), kept.read_text()) == ("<p>ä\n", "{}")
    assert [path.stat().st_mode & 0o777 for path in (page, kept)] == [0o644, 0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boards.html", "p1.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a link of another user's needs root: run as root")
def test_a_link_of_another_user_leads_nowhere(show, tmp_path):
    """Lost: any file of who asks for a page in a folder such as /tmp, to an account that put a link there before; or a
    page where people read it, by a link of one's own.
    """
    own, page, theirs = tmp_path / "own", tmp_path / "page", tmp_path / "boards.html"
    own.write_text("mine")
    for link, to in (("there", "page"), ("boards.html", "own"), ("on", "boards.html")):
        (tmp_path / link).symlink_to(to)
    os.chown(theirs, 1234, 1234, follow_symlinks=False)
    for name in ("boards.html", "on"):
        _lines, result = show(files={str(tmp_path / name): "<p>"})
        assert result["failed"]
        assert f"{theirs} is a link that another user has made" in result["msg"]
    show(files={str(tmp_path / "there"): "<p>"})
    assert (own.read_text(), page.read_text(), (tmp_path / "there").is_symlink()) == ("mine", "<p>", True)
    (tmp_path / "round").symlink_to("round")
    assert show(files={str(tmp_path / "round"): "<p>"})[1]["failed"]


def test_a_link_leads_up_from_where_it_is(show, tmp_path, monkeypatch):
    """Lost: a file that has the page's name and lies beside a link to the page's folder; and the new page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "srv" / "site").mkdir(parents=True)
    (tmp_path / "site").symlink_to("srv/site")
    (tmp_path / "site" / "boards.html").symlink_to("../index.html")
    own, page = tmp_path / "index.html", tmp_path / "srv" / "index.html"
    own.write_text("mine")
    there = f"{tmp_path}/site/boards.html"
    for name, text in ((there, "<p>"), ("site/boards.html", "<b>"), ("site/../index.html", "<i>")):
        assert "failed" not in show(files={name: text})[1]
        assert (own.read_text(), page.read_text()) == ("mine", text)


def test_a_dry_run_writes_nothing(show, tmp_path):
    lines, _result = show(check=True, lines=["a"], files={str(tmp_path / "boards.html"): "x"})
    assert lines == ["a"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(show, tmp_path):
    """Lost: which of several files is missing, and why."""
    lines, result = show(lines=["a"], files={str(tmp_path / "none" / "p1.json"): "{}"})
    assert (lines, result["failed"]) == ([], True)
    assert result["msg"].startswith(f"{tmp_path}/none/p1.json cannot be written (No such file or directory): let who")
