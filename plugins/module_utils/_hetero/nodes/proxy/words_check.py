# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a plan that are none of those that are known: drivers, transports, versions, credentials, ways to wipe. The
proxy would refuse each only when a verb comes to it, with boards that wait.

Whether a value is text at all is site/proxy_config.py's, and which boards and PDUs belong together is preflight.py's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping

from ...boards.disk.canaries import MOST
from ...boards.disk.wipe_disk import METHODS, PROOFS
from ...core.spelling import instead, like, meant_by
from ...core.typed_keys import shown, whole
from ...drivers.boot.registry import DRIVERS as BOOT_DRIVERS
from ...drivers.outside.source import NAME
from ...drivers.power.http_apis import OUTLET
from ...drivers.power.ipmi import OUTLET as IPMI_OUTLET
from ...drivers.power.registry import DRIVERS as POWER_DRIVERS
from ...drivers.power.registry import kin
from ...drivers.power.snmp import VERSIONS
from ...drivers.power.terminal import TRANSPORTS
from ...drivers.power.uhubctl import OUTLET as HUB_OUTLET
from ...site.proxy_config import PDU, SECRETS
from .entries_check import Entry

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...drivers.power.driver import PowerDriver
    from .setup_plan import Plan

    Drivers = Mapping[Any, type[PowerDriver]]

#: Drivers for tests are known, and proposed to nobody.
PLAYED = {"fake"}
#: What a PDU's driver reads of its credentials; agents and scripts have options of their own.
CREDENTIALS = {
    "apc": ("username", "password"),
    "http": ("username", "password"),
    "ipmi": ("username", "password"),
    "redfish": ("username", "password"),
    "snmp": ("community", "username", "password", "privacy_password"),
    "uhubctl": (),
}
#: What drivers cannot do without, in words; the others ask some PDUs that have no password.
LOGIN = {
    "apc": "username and password",
    "ipmi": "username and password",
    "redfish": "username and password",
    "snmp": "community, or with snmp_version 3 username and password",
}
#: The same of an interface of driver http.
TOKEN = {"home_assistant": "password, a long-lived access token"}
OF_CREDENTIALS = ("username", *SECRETS)
#: What else people, and fence agents, call a credential → its key; OWN is a key of the agent's or script's.
OWN = "own"
ALSO = {
    **dict.fromkeys(("user", "user_name", "login", "login_name", "logon", "account"), "username"),
    **dict.fromkeys(("pass", "pwd", "passcode", "pin", "auth", "auth_pass", "authpass", "secret"), "password"),
    **dict.fromkeys(("priv", "priv_pass", "privpass", "snmp_priv_passwd"), "privacy_password"),
    **dict.fromkeys(("apikey", "api_key", "private_key", "secret_key", "access_key"), OWN),
}
#: How words end that are one, whatever is before; the first that fits.
ENDS = {
    **dict.fromkeys(("priv_passwd", "priv_password", "privacy_passwd", "privacy_passphrase"), "privacy_password"),
    **dict.fromkeys(("password", "passwd", "passphrase", "passwort", "_pass", "_pwd"), "password"),
    **dict.fromkeys(("username", "_user"), "username"),
    **dict.fromkeys(("community", "community_string"), "community"),
    **dict.fromkeys(("secret", "token"), OWN),
}
#: What fence agents put behind the name of a secret that a program prints.
SCRIPT = "_script"
#: A number as SNMP writes one.
NUMBER = "(?:0|[1-9][0-9]*)"
#: Driver → what its outlets are called, and that in words; agents and scripts have names of their own.
OUTLETS = {
    "apc": (re.compile(r"[1-9][0-9]*"), "a number from 1, as the PDU shows it"),
    "http": (OUTLET, "its number or name, of letters, digits and . : _ -"),
    "ipmi": (re.compile(IPMI_OUTLET), f"{IPMI_OUTLET}, as a BMC has one machine"),
    "redfish": (re.compile(r"[^/\s]+"), "the Id of its system, as pdu_info shows it"),
    "uhubctl": (HUB_OUTLET, "HUB:PORT, such as 1-1.4:2, as uhubctl lists them"),
    "snmp": (re.compile(rf"(?:{NUMBER}(?:\.{NUMBER})*:)?{NUMBER}"), "its number, or UNIT:NUMBER, as pdu_info shows it"),
}
#: Key of a PDU → the drivers that read it, and the words that it may be.
PDU_WORDS = {"transport": (("apc",), tuple(TRANSPORTS)), "snmp_version": (("fence", "snmp"), VERSIONS)}
#: Driver → the settings of a PDU that it reads, and not all do.
READ = {
    "apc": ("transport", "host_key", "known_hosts", "legacy_ssh", "command_line"),
    "fence": ("agent", "agent_options", "snmp_version"),
    "http": ("api", "api_table", "tls", "tls_ca", "tls_verify"),
    "ipmi": ("cipher_suite",),
    "redfish": ("tls", "tls_ca", "tls_verify", "boot_once"),
    "snmp": ("snmp_version", "auth_protocol", "privacy_protocol"),
    "command": ("script",),
}
#: Drivers of BMCs, of which a setting says by what a machine boots, or who is trusted.
OF_MACHINES = ("ipmi", "redfish")
#: The agent that chooses a system by an option of its own (fence_redfish, find_systems_resource).
LAST_SYSTEM = "fence_redfish"
WIPE_WORDS = {"method": METHODS, "verify": PROOFS}
SAMPLES = whole(1, MOST)


def pdu(
    name: str, settings: Entry, found: Findings, drivers: Drivers = POWER_DRIVERS, outlets: Collection[str] = ()
) -> None:
    """Check the words of one PDU, and what its driver needs of them.

    :param drivers: all that there are, those that the site wrote itself among them.
    :param outlets: those that feed boards.
    """
    thing, driver = f"tftp_proxy_pdus, {name}", settings.get("driver")
    needs_host = driver not in drivers or drivers[driver].needs_host
    for key in ("driver", "host") if needs_host else ("driver",):
        if not settings.get(key) and key not in settings.wrong:
            found.defect(thing, f"has no {key}", f"name its {key}")
    _known(thing, "driver", driver, drivers, found)
    for key, (readers, words) in PDU_WORDS.items():
        if driver in readers:
            _known(thing, key, settings.get(key), words, found)
    if driver in drivers:
        wrong = drivers[driver].wrong(thing, dict({"outlets": list(outlets)} if outlets else {}, **settings))
        found.defects += [error for key, error in wrong if key not in settings.wrong]
    unread = sorted(key for key in settings if settings[key] not in (None, "") and not reads(driver, key))
    if unread and driver in OF_MACHINES:
        what = f"{', '.join(unread)}: driver {driver} does not read that"
        found.note(thing, what, "take it out, or name the driver that reads it")
    agent, options = str(settings.get("agent")).rpartition("/")[2], settings.get("agent_options") or {}
    if driver == "fence" and agent == LAST_SYSTEM and not {"systems_uri", "systems-uri"} & {*options}:
        what = f"{agent} switches the last system that its BMC lists, whatever the outlet"
        found.note(thing, what, "name the system by systems_uri in agent_options, or take driver redfish")
    for key in settings:
        meant = credential_of(key, settings)
        if meant:
            what = f"{shown(key)} stands among its settings, where no driver reads it and more people do"
            found.defect(thing, what, f"give {meant} in tftp_proxy_pdu_credentials, {name}, and nowhere else")
    for key in settings.get("agent_options") or {}:
        meant = credential_of(key, settings)
        if meant:
            what = f"{shown(key)} stands in its agent_options, which everybody on the proxy can read"
            found.defect(thing, what, f"give {meant} in tftp_proxy_pdu_credentials, {name}, and nowhere else")


def own_drivers(variable: str, names: Iterable[str], collection: Collection[str], found: Findings) -> None:
    """Check the names of drivers that the site wrote itself, which are names of files on the node.

    :param collection: the names of the collection's drivers.
    """
    for name in names:
        thing = f"{variable}, {shown(name)}"
        if not NAME.fullmatch(name):
            found.defect(thing, "is no name of a driver", "take a letter, then letters, digits and _, all small")
        elif name in collection:
            found.defect(thing, "is a driver of the collection, which would be taken", "take another name")


def credential_of(key: str, settings: Mapping[str, Any]) -> str | None:
    """Return the key of a PDU's credentials that is meant by one of its settings; None where that is no secret."""
    word = str(key).lower().replace("-", "_")
    if key in PDU.keys:
        return None
    if word.endswith(SCRIPT):  # a program of the site that prints it, which fence agents run
        return word if credential_of(word[: -len(SCRIPT)], settings) else None
    near = word if word in OF_CREDENTIALS else meant_by(word, OF_CREDENTIALS)
    meant = near or ALSO.get(word) or next((one for end, one in ENDS.items() if word.endswith(end)), None)
    # agents and scripts have what APC's drivers have not
    driver = settings.get("driver")
    return word if meant == OWN and not CREDENTIALS.get(str(driver)) else "password" if meant == OWN else meant


def reads(driver: Any, key: str) -> bool:
    """Return whether a driver reads a PDU's setting; of a driver of the site nobody knows that it does not."""
    name = str(driver)
    others = any(key in keys for other, keys in READ.items() if other != name)
    return name not in READ or key in READ[name] or not others


def boot_driver(thing: str, wire: Mapping[str, Any], found: Findings, own: Collection[str] = ()) -> None:
    """Check the boot driver of one board's wiring.

    :param own: names of drivers that the site wrote itself.
    """
    _known(thing, "driver", wire.get("driver"), list(dict.fromkeys([*BOOT_DRIVERS, *own])), found)


def outlet(thing: str, outlet: object, driver: Any, found: Findings) -> None:
    """Check the outlet of one board's wiring, as far as it is known what its PDU's driver may call one."""
    text, (pattern, words) = str(outlet), OUTLETS.get(driver, (None, "its name without blanks around it"))
    if not text.strip() or text != text.strip() or (pattern and not pattern.fullmatch(text)):
        found.defect(thing, f"outlet {shown(text)} is none that a PDU has", f"write {words}")


def credentials(plan: Plan, pdus: Mapping[str, Entry], found: Findings, drivers: Drivers = POWER_DRIVERS) -> None:
    """Check the keys of the PDUs' credentials; their values stay where they are."""
    if plan.credential_keys is None:
        return
    for name in sorted(set(plan.credentials_for) - set(plan.credential_keys)):
        found.defect(f"tftp_proxy_pdu_credentials, {name}", "are none", "give a mapping, such as username and password")
    for name, keys in sorted(plan.credential_keys.items()):
        driver = pdus.get(name, Entry()).get("driver")
        if driver not in drivers:
            driver = like(driver, CREDENTIALS)  # the word that it is refused with
        elif driver not in POWER_DRIVERS:
            driver = kin(drivers[driver])  # a driver of the site reads what the one does that it is derived from
        known = CREDENTIALS.get(str(driver))
        if known == ():
            found.note(name, f"has credentials, and driver {driver} reads none", "take them out")
        for key in keys:
            if known and key not in known:
                thing = f"tftp_proxy_pdu_credentials, {name}"
                found.defect(thing, f"unknown key {shown(key)}", instead(key, known))


def no_credentials(name: str, settings: Entry, found: Findings) -> None:
    """Note that a PDU has no credentials, if its driver reads any."""
    driver = str(settings.get("driver"))
    if CREDENTIALS.get(driver) != ():
        login = LOGIN.get(driver) or TOKEN.get(str(settings.get("api")))
        add = "add it to tftp_proxy_pdu_credentials if it asks for a password"
        found.note(name, "has no credentials", f"add to tftp_proxy_pdu_credentials its {login}" if login else add)


def wipe(given: Mapping[str, Any], found: Findings) -> None:
    """Check tftp_proxy_wipe, as boards/disk/wipes.py reads it."""
    for key, value in given.items():
        thing = f"tftp_proxy_wipe.{key}"
        if key in WIPE_WORDS:
            _known("tftp_proxy_wipe", key, value, WIPE_WORDS[key], found)
        elif key != "samples":
            found.defect("tftp_proxy_wipe", f"unknown key {shown(key)}", instead(key, (*WIPE_WORDS, "samples")))
        elif value not in (None, ""):
            SAMPLES.read(value, thing, found.defects)


def _known(thing: str, key: str, word: object, words: Iterable[str], found: Findings) -> None:
    """Report a defect if a word is said and is none of these."""
    if word not in (None, "") and str(word) not in words:
        offered = [one for one in words if one not in PLAYED]
        found.defect(thing, f"no such {key}: {shown(word)}", instead(word, offered))
