# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a played NFS server, fake_busctl.sh and fake_busctl.pl."""

from __future__ import annotations

from pathlib import Path

BUSCTL = Path(__file__).with_name("fake_busctl.pl")
LOOKS = BUSCTL.with_suffix(".sh")


def put_busctl(folder, exports=None):
    """Make it a program that is started as `busctl`: by a shell, and Perl where it is to change something.

    :param exports: the file that it takes for the server's table where $FAKE_GANESHA names none.
    """
    program = folder / "busctl"
    begin = f'#!/bin/sh\nexport FAKE_GANESHA="${{FAKE_GANESHA-{exports}}}"\n'
    program.write_text(f'{begin}{LOOKS.read_text()}exec perl -x "$0" "$@"\n#!/usr/bin/perl -w\n{BUSCTL.read_text()}')
    program.chmod(0o755)
