# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a plan that are none of those that are known: drivers, transports, versions, credentials, ways to wipe. The
proxy would refuse each only when a verb comes to it, with boards that wait.

Whether a value is text at all is config.py's, and which boards and PDUs belong together is preflight.py's.
"""

from __future__ import annotations

from ..boards.canaries import MOST
from ..boards.wipe_disk import METHODS, PROOFS
from ..boot.registry import DRIVERS as BOOT_DRIVERS
from ..near import instead, like, meant_by
from ..power.driver import SECRETS
from ..power.registry import DRIVERS as POWER_DRIVERS
from ..power.snmp import VERSIONS
from ..power.terminal import TRANSPORTS
from ..typed import shown, whole

#: Drivers for tests are known, and proposed to nobody.
PLAYED = {"fake"}
#: What a PDU's driver reads of its credentials; agents and scripts have options of their own.
CREDENTIALS = {
    "apc": ("username", "password"),
    "snmp": ("community", "username", "password", "privacy_password"),
}
OF_CREDENTIALS = ("username", *SECRETS)
#: Key of a PDU → the drivers that read it, and the words that it may be.
PDU_WORDS = {"transport": (("apc",), tuple(TRANSPORTS)), "snmp_version": (("fence", "snmp"), VERSIONS)}
WIPE_WORDS = {"method": METHODS, "verify": PROOFS}
SAMPLES = whole(1, MOST)


def pdu(name, settings, found):
    """The words of one PDU, and what its driver needs of them, as an entries_check.Entry."""
    thing, driver = f"tftp_proxy_pdus, {name}", settings.get("driver")
    for key in ("driver", "host"):
        if not settings.get(key) and key not in settings.wrong:
            found.defect(thing, f"has no {key}", f"name its {key}")
    _known(thing, "driver", driver, POWER_DRIVERS, found)
    for key, (drivers, words) in PDU_WORDS.items():
        if driver in drivers:
            _known(thing, key, settings.get(key), words, found)
    if driver in POWER_DRIVERS:
        wrong = POWER_DRIVERS[driver].wrong(thing, settings)
        found.defects += [error for key, error in wrong if key not in settings.wrong]
    for key in settings:
        meant = key if key in OF_CREDENTIALS else meant_by(str(key), OF_CREDENTIALS)
        if meant:
            what = f"{shown(key)} stands among its settings, where no driver reads it and more people do"
            found.defect(thing, what, f"give {meant} in tftp_proxy_pdu_credentials, {name}, and nowhere else")


def boot_driver(thing, wire, found):
    """The boot driver of one board's wiring."""
    _known(thing, "driver", wire.get("driver"), BOOT_DRIVERS, found)


def credentials(plan, pdus, found):
    """The keys of the PDUs' credentials; their values stay where they are."""
    if plan.credential_keys is None:
        return
    for name in sorted(set(plan.credentials_for) - set(plan.credential_keys)):
        found.defect(f"tftp_proxy_pdu_credentials, {name}", "are none", "give a mapping, such as username and password")
    for name, keys in sorted(plan.credential_keys.items()):
        driver = pdus.get(name, {}).get("driver")
        if driver not in POWER_DRIVERS:
            driver = like(driver, CREDENTIALS)  # the word that it is refused with
        for key in keys if driver in CREDENTIALS else ():
            if key not in CREDENTIALS[driver]:
                thing = f"tftp_proxy_pdu_credentials, {name}"
                found.defect(thing, f"unknown key {shown(key)}", instead(key, CREDENTIALS[driver]))


def wipe(given, found):
    """tftp_proxy_wipe, as boards/wiping.py reads it."""
    for key, value in given.items():
        thing = f"tftp_proxy_wipe.{key}"
        if key in WIPE_WORDS:
            _known("tftp_proxy_wipe", key, value, WIPE_WORDS[key], found)
        elif key != "samples":
            found.defect("tftp_proxy_wipe", f"unknown key {shown(key)}", instead(key, (*WIPE_WORDS, "samples")))
        elif value not in (None, ""):
            SAMPLES.read(value, thing, found.defects)


def _known(thing, key, word, words, found):
    """A defect where a word is said and is none of these."""
    if word not in (None, "") and str(word) not in words:
        offered = [one for one in words if one not in PLAYED]
        found.defect(thing, f"no such {key}: {shown(word)}", instead(word, offered))
