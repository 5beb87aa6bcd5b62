# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversation with a PDU's terminal, whatever else its process has open."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack

from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils.power.terminal import Line


def test_a_session_beside_a_thousand_open_files():
    """Lost: a request for a thousand boards, whose locks are held while their PDU is spoken to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        for _file in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        line = Line("pdu-t", ["sh", "-c", "printf 'User Name : '; read name"], "secret", Deadline(60))
        stack.callback(line.close)
        assert line.read("user")[0] == "user"


def test_what_is_typed_is_on_the_screen_only_where_the_pdu_puts_it():
    """Lost: which words are the PDU's; what we type would be read as its answer."""
    asks = "printf 'User Name : '; read name; printf 'Password  : '; read word; printf 'User Name : '; read name"
    line = Line("pdu-t", ["sh", "-c", asks], "secret", Deadline(60))
    try:
        assert line.read("user") == ("user", "User Name : ")
        line.send("apc")
        assert line.read("password") == ("password", "Password  : ")
        line.send("secret", secret=True)
        assert line.read("user") == ("user", "User Name : ")
    finally:
        line.close()
