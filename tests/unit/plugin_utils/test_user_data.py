# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with data for cloud-init. Lost if these fail: a secret in it, which is shown, or one that none may name."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.cloud_init import MOST
from ansible_collections.hetero.compute.plugins.plugin_utils.user_data import user_data

DATA = "#cloud-config\nruncmd: [echo '{{ secret }}']\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_what_is_in_the_file_is_taken_as_it_is(folder):
    (folder / "first.yml").write_text(DATA)
    assert user_data("first.yml") == dict(text=DATA, problem="")
    assert user_data("~/first.yml")["text"] == DATA
    assert "Unsafe" in type(user_data("first.yml")["text"]).__name__ or _is_untrusted(user_data("first.yml")["text"])
    for nothing in ("", None):
        assert user_data(nothing) == dict(text="", problem="")


def _is_untrusted(text):
    """From ansible-core 2.19 on, text is a template only where it is marked as trusted."""
    from ansible._internal._datatag._tags import TrustedAsTemplate

    return not TrustedAsTemplate.is_tagged_on(text)


def test_a_form_names_no_file(folder):
    """A job could read others' secrets for whoever fills in its form."""
    (folder / "first.yml").write_text(DATA)
    said = user_data("first.yml", in_a_job=True)
    assert said == dict(text="", problem="user_data is for the command line: a job reads no file that somebody names")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "cannot be read (No such file or directory): give the name of a file on the controller"),
        ("folder", "is no plain file: give the name of a file on the controller"),
        ("pipe", "is no plain file: give the name of a file on the controller"),
        (b"secret", "does not begin as data for cloud-init do: begin it with #cloud-config"),
        (b"", "does not begin as data for cloud-init do"),
        (DATA.encode().ljust(MOST + 1), f"has more than {MOST} bytes: let it fetch the rest"),
        (b"\x1f\x8b secret", "is no text in UTF-8"),
        (b"#cloud-config\nsecret\0", "is no text: give text in UTF-8"),
    ],
)
def test_what_is_wrong_is_said_without_a_word_of_the_file(folder, data, why):
    path = folder / "first.yml"
    if data == "folder":
        path.mkdir()
    elif data == "pipe":
        os.mkfifo(path)
    elif data is not None:
        path.write_bytes(data)
    said = user_data("first.yml")
    assert said["problem"].startswith(f"user_data: first.yml {why}")
    assert said["text"] == ""
    assert "secret" not in said["problem"]


@pytest.mark.parametrize("text", ["#!/bin/sh echo secret", "#cloud-config", "first.yml\nsecret"])
def test_text_in_place_of_a_file_is_not_repeated(folder, text):
    """Lost: a password, in the log of whoever takes the option for the text."""
    said = user_data(text)["problem"]
    assert said == "user_data is the name of a file, and no text: write it to one, and name that"


def test_what_can_be_no_name_is_said(folder):
    assert user_data("first\0.yml")["problem"].endswith("is no name of a file")
