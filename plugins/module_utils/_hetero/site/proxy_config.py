# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy node's configuration file, and beside it the PDUs' credentials, as role tftp_proxy writes them.

They are JSON because the system's Python has no YAML. The boards file says which boards there are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..core import retention
from ..core.errors import BadInput, HeteroError
from ..core.json_file import any_number, read_object
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..core.typed_keys import (
    ADDRESS,
    FLAG,
    LONG_TEXT,
    MAPPING,
    NETWORK,
    NUMBERED,
    PATH,
    SECRET,
    TEXT,
    Key,
    Kind,
    ListOf,
    Record,
    RecordOf,
    TableOf,
    WrongFile,
    declared,
    is_text,
    number,
    read_all,
    read_file,
    whole,
)
from .console_lines import CONSOLE_FROM, ConsoleLine
from .owner_limits import LIMITS
from .pdu_banks import NAMED as BANKS
from .pdu_banks import banks_of
from .reservations import RESERVATIONS

if TYPE_CHECKING:
    from .boards_file import Board
    from .owner_limits import Limit
    from .reservations import Reservation

#: Options that are secrets. The user name is none.
SECRETS = ("password", "community", "privacy_password")

#: Where role tftp_proxy writes the configuration.
CONFIG = "/etc/hetero/proxy.json"
#: Where the folders of a site's own drivers are (drivers/outside/folder.py), and that of power drivers below it.
DRIVERS_FOLDER, POWER_DRIVERS = "/etc/hetero", "power_drivers"
SET_UP = f"run {play('proxy')}"
#: The remedy for a PDU that the configuration has not.
NAME_ONE = f"name one of these; where it is new in the inventory, {SET_UP}"

_SECONDS = Key(number(0, 86400))
#: How driver `fake` plays a board's boot (drivers/boot/fake.py).
_PLAYED = Record(
    {
        **dict.fromkeys(("tftp", "nfs", "running"), _SECONDS),
        "stall": Key(TEXT),
        "stalls": Key(whole()),
        "feeds": Key(ListOf(whole())),
        "soft": Key(TEXT),
        "key": Key(LONG_TEXT),
        "proxy": Key(TEXT),
        **dict.fromkeys(("taken", "unproven", "wrong_key"), Key(FLAG)),
        **dict.fromkeys(("strangers", "thief"), Key(ListOf(LONG_TEXT))),
    }
)


#: `disk` of a board that has none, whatever the boards file counts as its local_gb.
NO_DISK = "none"


def _disks(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    right = isinstance(names, list) and names and all(is_text(name) and name for name in names)
    return value if right or value == [] else None


#: One entry of `pdus`: the options of its driver, which itself knows which words it takes.
PDU = Record(
    {
        "driver": Key(TEXT),
        "host": Key(TEXT),
        "port": Key(whole(1, 65535)),
        "transport": Key(TEXT),
        "host_key": Key(LONG_TEXT),
        "known_hosts": Key(PATH),
        "legacy_ssh": Key(FLAG),
        "command_line": Key(FLAG),
        "snmp_version": Key(NUMBERED),
        "snmp_table": Key(MAPPING),
        "auth_protocol": Key(TEXT),
        "privacy_protocol": Key(TEXT),
        "agent": Key(TEXT),
        "agent_options": Key(MAPPING),
        "script": Key(PATH),
        "api": Key(TEXT),
        "api_table": Key(MAPPING),
        "tls": Key(FLAG),
        "tls_ca": Key(PATH),
        "tls_verify": Key(FLAG),
        "boot_once": Key(TEXT),
        "cipher_suite": Key(whole(1, 17)),
        "outlets": Key(ListOf(NUMBERED)),
        "inrush": Key(whole(1, 10**4)),
        "banks": Key(Kind(BANKS, lambda value: value if banks_of(value) is not None else None)),
        "path": Key(PATH),
    }
)


@dataclass(frozen=True)
class Wire:
    """One entry of `boards`: what the boards file does not say. None is what the entry does not say.

    :param fake: the options of driver `fake`.
    :param others: the options of a driver of the site.
    """

    pdu: str | None = declared(TEXT)
    outlet: str | None = declared(NUMBERED)
    driver: str | None = declared(TEXT)
    console: str | None = declared(PATH)
    console_command: str | None = declared(LONG_TEXT)
    console_from: ConsoleLine | None = declared(CONSOLE_FROM)  # noqa: RUF009 (it is frozen)
    cmdline: str | None = declared(LONG_TEXT)
    kernel_source: str | None = declared(TEXT)
    request_timeout: float | None = declared(number(1, 86400))
    address: str | None = declared(ADDRESS)
    firewall: str | None = declared(TEXT)
    disk: str | Sequence[str] | None = declared(Kind("a device (/dev/sda), a list of such, or none", _disks))
    accept_unwiped: Sequence[str] | None = declared(ListOf(TEXT))
    ram_key: str | None = declared(TEXT)
    fake: Mapping[str, Any] | None = declared(_PLAYED)
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def disks(self) -> list[str]:
        """The device names of the board's local disks."""
        if self.disk == NO_DISK:
            return []
        return [self.disk] if isinstance(self.disk, str) else list(self.disk or ())

    @property
    def fed(self) -> tuple[str, str] | None:
        """The names of the PDU and the outlet; None where one of them is missing."""
        return None if self.pdu is None or self.outlet is None else (self.pdu, self.outlet)


#: The wiring of a board that proxy.json does not name.
UNWIRED = Wire()


@dataclass(frozen=True)
class UsualWipe:
    """How disks are wiped where nobody says; None is what the file does not say."""

    method: str | None = declared(TEXT)
    verify: str | None = declared(TEXT)
    samples: int | None = declared(whole())
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UsualCheck:
    """How boards are checked where nobody says; None is what the file does not say.

    :param hours: hours after which the timer has a board checked again.
    :param boards: boards that one turn of the timer checks.
    """

    memory_mb: int | None = declared(whole(1, 10**6))
    disk_mb_s: float | None = declared(number(0, 10**6))
    network_mb_s: float | None = declared(number(0, 10**6))
    boot_seconds: float | None = declared(number(0, 86400))
    hours: float | None = declared(number(0, 10**5))
    boards: int | None = declared(whole(1, 1000))
    others: Mapping[str, Any] = field(default_factory=dict)


#: Keys of a console whose log another program writes.
OF_OTHERS = ("console", "console_command")


class _WireKind(RecordOf):
    """One entry of `boards`. Where conserver writes a console's log, none of another program is named beside it."""

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> Any:
        wire = super().read(value, place, mistakes)
        for key in OF_OTHERS if wire.console_from else ():
            if getattr(wire, key):
                remedy = "take it out, or console_from if another program than the proxy's conserver writes the log"
                mistakes.append(BadInput("stands beside console_from", f"{place}.{key}", remedy))
        return wire


#: The reader of one entry of `boards`.
WIRE = _WireKind(Wire)
#: The command that attaches to the console of a board or an instance by the proxy's conserver.
ATTACH = "/usr/local/sbin/hetero console {name}"
#: The command that prints the log of a board's console as it grows.
FOLLOW = "/usr/local/sbin/hetero console {name} --follow"


@dataclass(frozen=True)
class ProxyConfig:
    """The contents of proxy.json.

    :param pdus: {name of a PDU: the options of its driver}.
    :param boards: {id of a board as text: its wiring}.
    :param boots_at_once: most boards that boot at the same time; 0 for as many as fill the link of `interface`.
    :param boot_http: the port by which nginx gives boards their files; 0 where they have them by TFTP alone.
    :param owner_limits: {owner, or * for all others: what it may have}.
    :param reservations: which boards are whose, from when until when.
    :param events_days: for how many days events are kept.
    :param drivers: paths below DRIVERS_FOLDER of the files that the role put there.
    :param ram_images: {arch: name of its RAM image}.
    :param console_logs: the folder of the logs that the proxy's conserver writes.
    :param console_port: its port at 127.0.0.1.
    :param others: keys that only a driver of the site knows.
    """

    server: str = declared(ADDRESS, "")
    tftp_root: str = declared(PATH, "/tftpboot")
    state_folder: str = declared(PATH, "/var/lib/hetero")
    run_folder: str = declared(PATH, "/run/hetero")
    exports: str = declared(TEXT, "ganesha")
    dhcp: bool = declared(FLAG, False)
    interface: str = declared(TEXT, "")
    network: str = declared(NETWORK, "")
    pinned: bool = declared(FLAG, False)
    credentials: str = declared(PATH, "/etc/hetero/credentials.json")
    roots_overcommit: float = declared(number(1, 10**6), 1.0)
    root_gb: int = declared(whole(1, 10**6), 8)
    boots_at_once: int = declared(whole(0, 10**5), 0)
    boot_http: int = declared(whole(0, 65535), 0)
    owner_limits: Mapping[str, Limit] = declared(LIMITS, {})
    reservations: Sequence[Reservation] = declared(RESERVATIONS, ())
    events_days: int = declared(whole(1, 36500), retention.EVENTS_DAYS)
    soft_reboot: bool = declared(FLAG, True)
    tile_monitor: str = declared(PATH, "/usr/local/TileraMDE/bin/tile-monitor")
    console_logs: str = declared(PATH, "/var/log/hetero/conserver")
    console_port: int = declared(whole(1, 65535), 3782)
    pdus: Mapping[str, Mapping[str, Any]] = declared(TableOf(PDU), {})
    boards: Mapping[str, Wire] = declared(TableOf(WIRE), {})
    ram_images: Mapping[str, str] = declared(TableOf(TEXT), {})
    drivers: Sequence[str] = declared(ListOf(TEXT), ())
    wipe: UsualWipe = declared(RecordOf(UsualWipe), UsualWipe())  # noqa: RUF009 (it is frozen)
    check: UsualCheck = declared(RecordOf(UsualCheck), UsualCheck())  # noqa: RUF009 (it is frozen)
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def consoles_folder(self) -> str:
        """The folder of what the proxy's conserver reads, made anew when it starts; others than root may enter it."""
        return f"{self.run_folder}-consoles"

    def console_log(self, name: str) -> str:
        """Return the log of the board of that name, where the proxy's conserver writes it."""
        return os.path.join(self.console_logs, f"{name}.log")

    def wiring(self, board: Board) -> Wire:
        """Return what is said of a board; of a console that the proxy's conserver serves, its log and how to attach."""
        wire = self.boards.get(str(board.id), UNWIRED)
        if wire.console_from is None:
            return wire
        return replace(wire, console=self.console_log(board.name), console_command=ATTACH.format(name=board.name))


#: The reader of proxy.json.
FILE = RecordOf(ProxyConfig)
#: The configuration of a proxy whose proxy.json is empty.
DEFAULTS = ProxyConfig()
#: credentials.json: PDU → option → secret, which no mistake shows. Filter credential_mistakes looks first.
_CREDENTIAL = Record(dict.fromkeys(("username", *SECRETS), Key(SECRET)), secret=True, others=SECRET)
CREDENTIALS = TableOf(_CREDENTIAL, secret=True)


def read_config(path: str) -> ProxyConfig:
    """Return the configuration with its defaults; raise BadInput if it is missing or wrong."""
    return read_file(path, FILE, SET_UP)


def tenants_paths(config: ProxyConfig) -> list[str]:
    """Return paths that tenants write to, or whose files hold what boards said. No image is imported from there."""
    consoles = [wire.console for wire in config.boards.values() if wire.console]
    return [config.state_folder, config.run_folder, config.tftp_root, config.console_logs, *consoles]


def files_of(path: str) -> dict[str, str]:
    """Return the parameters `config`, `boards_file` and `state_db` for a command that only knows the configuration."""
    config = read_config(path)
    return dict(
        config=path,
        boards_file=os.path.join(config.tftp_root, "tilera_boards"),
        state_db=os.path.join(config.state_folder, "state.db"),
    )


def pdu(config: ProxyConfig, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return (settings, secrets) of a PDU; without a credentials file it has no secrets.

    BadInput names the known PDUs.
    """
    if name not in config.pdus:
        known = ", ".join(sorted(config.pdus)) or "none"
        raise BadInput(f"no such PDU (known: {known})", name, NAME_ONE)
    # A driver that cannot ask the PDU which outlets it has (fence, command) takes those that feed boards.
    wired = [wire.outlet for wire in config.boards.values() if wire.pdu == name and wire.outlet is not None]
    settings = dict({"outlets": wired} if wired else {}, **config.pdus[name])
    if settings.get("transport") == "ssh":
        settings.setdefault("known_hosts", os.path.join(config.state_folder, "pdu_known_hosts"))
    if settings.get("driver") == "fake" and "path" not in settings:
        raise BadInput("names no path", name, "name the file that plays it (path), or another driver")
    return settings, _secrets(config.credentials, name)


def _secrets(path: str, name: str) -> dict[str, str]:
    """Return the secrets of one PDU. Mistakes in those of another do not matter."""
    if not os.path.exists(path):
        return {}
    mistakes: list[HeteroError] = []
    given = read_object(path, SET_UP, any_number, THIS_NODE)
    said = read_all(CREDENTIALS, {name: given[name]} if name in given else {}, "", mistakes)
    if mistakes:
        raise WrongFile(path, mistakes, SET_UP)
    return said.get(name, {})
