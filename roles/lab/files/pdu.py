# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switched PDU of the lab: `pdu.py CONFIG.json NAME`. Its outlets really start and kill the boards, its children.

It gives its one place to one user at a time, asks for the password, and hands the user to a dialect. It knows nothing
of images, boots or claims. Standard library only, so that it runs on any system's Python.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import signal
import socket
import sys
import time

from switched_pdu import snmp
from switched_pdu.cli import WORDS, CommandLine
from switched_pdu.menus import FIRMWARE, Menus
from switched_pdu.outlets import Outlet
from switched_pdu.terminal import Gone, Terminal

TAKEN = "\r\nAnother user is logged in to this device. Please try again later.\r\n"
DIALECTS = {**dict.fromkeys(FIRMWARE, Menus), **dict.fromkeys(WORDS, CommandLine)}
BAD_LOGINS = 3  # in a row, after which nobody is let in for settings' `lockout`
LOCKOUT = 120  # seconds


class Pdu:
    """The outlets, the one user's place, and the status file that tells the lab what is on."""

    def __init__(self, path, name):
        self._path, self._name = path, name
        self._busy = False
        self.screens = self.logins = self.logouts = self._bad_logins = 0
        self._locked_until = 0.0
        self._delayed = {}  # timers of an outlet
        self._since = time.time()
        self._server = None
        self.read()
        loop = asyncio.get_running_loop()
        wired = self.settings.get("outlets", {})
        count = max([self.settings.get("outlet_count", 8), *map(int, wired)])
        place = (self.settings["address"], self.settings.get("device"))
        self.outlets = [Outlet(number, wired.get(str(number), {}), loop, place) for number in range(1, count + 1)]

    def read(self):
        """Read CONFIG.json; again at SIGHUP, so that faults, delay and dialect change while boards run."""
        with open(self._path, encoding="utf-8") as file:
            config = json.load(file)
        self._run = config["run"]
        self.settings = config["pdus"][self._name]
        self.faults = self.settings.get("faults", {})
        self._sent_away = self.faults.get("busy", 0)

    def save(self):
        """Write run/NAME.json whole or not at all."""
        state = {
            "pid": os.getpid(),
            "address": self._address,
            "screens": self.screens,
            "logins": self.logins,
            "logouts": self.logouts,
            "bad_logins": self._bad_logins,
            "outlets": {
                str(outlet.number): {"state": outlet.state, "pid": outlet.board.pid if outlet.board else None}
                for outlet in self.outlets
            },
        }
        os.makedirs(self._run, exist_ok=True)
        path = os.path.join(self._run, f"{self._name}.json")
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(state, file, indent=1)
        os.replace(f"{path}.new", path)

    async def command(self, action, numbers):
        """Carry out (verb, seconds until then) on outlets, as far as the fault switches let it happen.

        `cancel` ends what is delayed.
        """
        await self.fault("command")
        verb, delay = action
        if verb == "cancel":
            for number in numbers:
                for timer in self._delayed.pop(number, ()):
                    timer.cancel()
        elif delay:
            loop = asyncio.get_running_loop()
            for number in numbers:
                self._delayed.setdefault(number, []).append(loop.call_later(delay, self._switch, verb, [number]))
        else:
            self._switch(verb, numbers)

    def _switch(self, verb, numbers):
        for outlet in (self.outlets[number - 1] for number in numbers):
            if str(outlet.number) in self.faults.get("stuck", ()):
                continue
            if verb == "reboot" and outlet.state == "on":
                outlet.off()
                outlet.on()
            elif verb == "off":
                outlet.off()
            elif verb == "on":
                outlet.on()
        self.save()

    async def fault(self, place):
        """The switches `hang` and `drop` name a place: connect, login or command."""
        if self.faults.get("hang") == place:
            await asyncio.sleep(self.settings.get("idle", 180))
            raise Gone
        if self.faults.get("drop") == place:
            raise Gone

    def _taken(self):
        """Whether somebody else has the place: really, or by switch `busy`: so many users to come, or true for all."""
        if self._busy or not self._sent_away:
            return self._busy
        if self._sent_away is not True:
            self._sent_away -= 1
        return True

    async def user(self, reader, writer):
        """One connection: a second user is told so and sent away; fault `refusal` says in which way."""
        try:
            if self._taken():
                if self.faults.get("refusal") == "refuse":
                    writer.transport.abort()
                elif self.faults.get("refusal") != "close":
                    writer.write(TAKEN.encode())
                return
            self._busy = True
            try:
                if self.faults.get("refusal") == "refuse":
                    self._server.close()
                if time.monotonic() >= self._locked_until:
                    await self._session(Terminal(reader, writer, self))
            except Gone:
                pass  # the user has left, which is how sessions end
            finally:
                self._busy = False
                self.save()
                await self.listen()
        finally:
            writer.close()

    async def _session(self, terminal):
        await self.fault("connect")
        if time.time() - self._since < self.faults.get("initializing", 0):
            await terminal.show("\nThe Switched Rack PDU is still initializing. Please try again later.\n")
            return
        terminal.offer()
        await terminal.show("\n", screen=False)
        name = await self._logged_in(terminal)
        if name is None:
            return
        self.logins += 1
        await self.fault("login")
        dialect = DIALECTS[name](self, terminal, name)
        now, minutes = datetime.datetime.now(), int(time.time() - self._since) // 60
        up = f"{minutes // 1440} Days {minutes // 60 % 24} Hours {minutes % 60} Minutes"
        await terminal.show(
            f"\n{dialect.banner}{'-' * 79}\n"
            f"Name      : {self._name:<42} Date : {now:%m/%d/%Y}\n"
            f"Contact   : {'Unknown':<42} Time : {now:%H:%M:%S}\n"
            f"Location  : {'Unknown':<42} User : Administrator\n"
            f"Up Time   : {up:<42} Stat : P+ N+ A+\n\n"
            "Switched Rack PDU: Communication Established\n",
            screen=False,
        )
        if self.faults.get("screen"):
            await terminal.show(f"\n{self.faults['screen']}\n> ")
            await terminal.line()
        await dialect.serve()
        self.logouts += 1

    async def _logged_in(self, terminal):
        """Ask for the user's name and password; the dialect that he gets, None for nobody.

        AOS 3 has a command line beside its menus, for a password with " -c" behind it (APC's manual of it, page 5);
        setting `command_line` takes it away.
        """
        dialect = self.settings.get("dialect", "menu")
        known = {self.settings["password"]: dialect}
        if dialect.startswith("menu") and not dialect.startswith("menu2") and self.settings.get("command_line", True):
            known[f"{self.settings['password']} -c"] = "cli3"
        while self._bad_logins < BAD_LOGINS:
            name = ""
            while not name:
                await terminal.show("\rUser Name : ")  # powerman waits for these CRs
                name = await terminal.line()
            await terminal.show("\rPassword  : ")
            password = await terminal.line(secret=True)
            if name == self.settings["username"] and password in known:
                self._bad_logins = 0
                return known[password]
            self._bad_logins += 1
        self._bad_logins = 0
        self._locked_until = time.monotonic() + self.settings.get("lockout", LOCKOUT)
        return None

    async def listen(self):
        """Open the port, unless it is open; a PDU that refuses its second user closes it meanwhile."""
        if self._server and self._server.is_serving():
            return
        address = self.settings["address"]
        port = self._address[1] if self._server else self.settings.get("port", 23)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        # With the protocol named, asyncio switches Nagle's algorithm off; else each screen waits 40 ms behind its echo.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.settings.get("device"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.settings["device"].encode())
        listening.bind((address, port))
        self._address = listening.getsockname()[:2]
        self._server = await asyncio.start_server(self.user, sock=listening)

    def ended(self):
        """A child of ours ended."""
        for outlet in self.outlets:
            if outlet.look():
                self.save()

    async def run(self):
        for line in (outlet.line for outlet in self.outlets if outlet.line):
            await line.listen()
        await self.listen()
        wired = self.settings.get("outlets", {})
        for outlet in self.outlets:
            if wired.get(str(outlet.number), {}).get("state") == "on":
                outlet.on()
        self.save()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number, action in (
            (signal.SIGTERM, stop.set),
            (signal.SIGINT, stop.set),
            (signal.SIGHUP, self.read),
            (signal.SIGCHLD, self.ended),
        ):
            loop.add_signal_handler(number, action)
        print(f"{self._name} listens on {self._address[0]} port {self._address[1]}", flush=True)
        await snmp.listen(self)
        await stop.wait()
        for outlet in self.outlets:
            outlet.off()
        self.save()


async def main(path, name):
    await Pdu(path, name).run()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: pdu.py CONFIG.json NAME")
    asyncio.run(main(sys.argv[1], sys.argv[2]))
