# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's tile-monitor: takes the command lines that Tilera's is known to take, and no others, and acts on a board.

On the board answers images/tile-agent. Each call that reached a board is written to TILE_MONITOR_LOG. Standard library
only, so that it runs on any system's Python.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys

#: The port by which tile-monitor acts on a board, as Nova's bare-metal driver for Tilera has it in its firewall rule.
PORT = int(os.environ.get("TILE_MONITOR_PORT", "963"))
LOG = os.environ.get("TILE_MONITOR_LOG", "/var/log/hetero/consoles/tile-monitor.log")
CONNECT = 2.0  # seconds
CHUNK = 1 << 16


class Wrong(Exception):
    """A command line that tile-monitor would not take."""


def parse(words):
    """(address, actions) of a command line; an action is ("run", words) or ("upload", source, target)."""
    words = list(words)

    def take(name, what=None):
        if not words:
            raise Wrong(f"{name} is missing")
        if what is not None and words[0] != what:
            raise Wrong(f"'{words[0]}' where {name} must stand")
        return words.pop(0)

    take("--resume", "--resume")
    take("--net", "--net")
    address = take("the address after --net")
    try:
        socket.inet_aton(address)
    except OSError:
        raise Wrong(f"'{address}' is not an address") from None
    if words[:1] == ["--"]:
        if not words[1:]:
            raise Wrong("no command after --")
        return address, [("run", words[1:])]
    actions = []
    while True:
        word = take("--quit")
        if word == "--run":
            take("the '-' that begins a command", "-")
            command = []
            while (part := take("the '-' that ends a command")) != "-":
                command.append(part)
            if not command:
                raise Wrong("no command between '-' and '-'")
            take("--wait after --run", "--wait")
            actions.append(("run", command))
        elif word == "--upload":
            actions.append(("upload", take("the source of --upload"), take("the target of --upload")))
        elif word == "--quit":
            if words:
                raise Wrong(f"'{words[0]}' after --quit")
            if not actions:
                raise Wrong("nothing to do")
            return address, actions
        else:
            raise Wrong(f"unknown option '{word}'")


class Board:
    """A board's agent: one connection an action, answered by "STATUS SIZE SIZE" and so much output and error output."""

    def __init__(self, address):
        self.address = address

    def do(self, action):
        """The exit status; what was said is passed on."""
        with socket.create_connection((self.address, PORT), timeout=CONNECT) as link:
            link.settimeout(None)
            if action[0] == "run":
                line = " ".join(map(shlex.quote, action[1])).encode()
                link.sendall(b"run %d\n" % len(line) + line)
            else:
                self._upload(link, *action[1:])
            link.shutdown(socket.SHUT_WR)
            with link.makefile("rb") as answer:
                status, *sizes = map(int, answer.readline().split() or [-1])
                if len(sizes) != 2:
                    raise ConnectionError("the board went away")
                for size, stream in zip(sizes, (sys.stdout.buffer, sys.stderr.buffer)):
                    while size:
                        data = answer.read(min(size, CHUNK))
                        if not data:
                            raise ConnectionError("the board went away")
                        stream.write(data)
                        size -= len(data)
                    stream.flush()
        return status

    def _upload(self, link, source, target):
        with open(source, "rb") as file:
            size, name = os.fstat(file.fileno()).st_size, os.fsencode(target)
            link.sendall(b"put %d %d\n" % (len(name), size) + name)
            while data := file.read(CHUNK):
                link.sendall(data)


def say(text):
    sys.stderr.write(f"tile-monitor: {text}\n")


def main(words):
    try:
        address, actions = parse(words)
    except Wrong as wrong:
        say(wrong)
        return 2
    board, status = Board(address), 0
    for number, action in enumerate(actions):
        try:
            status = board.do(action)
        except OSError as error:
            say(f"{'cannot connect to' if number == 0 else 'lost'} {address}: {error}")
            return 1
        if status:
            break
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(json.dumps({"argv": words, "status": status}) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
