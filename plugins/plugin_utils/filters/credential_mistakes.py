# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.credential_mistakes`: what is wrong with credentials, without showing any of them."""

from __future__ import annotations

import datetime
from typing import Any, Iterator

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.typed_keys import is_text
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import CONTROL
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import SECRETS

#: Keys with which a driver logs in. Others are options of a fence agent or script, and may be empty.
KNOWN = ("username", *SECRETS)
QUOTES = "put it in quotes"


def credential_mistakes(credentials: Any, variable: str = "tftp_proxy_pdu_credentials") -> list[dict[str, str]]:
    if not isinstance(credentials, dict):
        raise AnsibleFilterError("hetero.compute.credential_mistakes needs a mapping of PDUs before the bar")
    found = []
    for pdu, secrets in credentials.items():
        # the node itself reports secrets that are no mapping
        for key, secret in secrets.items() if isinstance(secrets, dict) else ():
            for what, remedy in _mistakes(key, _plain(secret)):
                found.append({"thing": f"{variable}, {pdu}", "what": f"its {key} {what}", "remedy": remedy})
    return found


def _mistakes(key: str, secret: Any) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong with a secret, what to do), without showing the secret."""
    if secret is None or (secret == "" and key in KNOWN):
        yield "is empty", "give it, or leave its key out"
    elif isinstance(secret, bool):
        yield "is true or false to YAML", QUOTES
    elif isinstance(secret, float):
        yield "is a number with a point to YAML", QUOTES
    elif isinstance(secret, datetime.date):
        yield "is a date to YAML", QUOTES
    elif isinstance(secret, (dict, list, tuple)):
        yield "is a list or a mapping to YAML", f"give text; where that has brackets or a colon, {QUOTES}"
    elif isinstance(secret, str) and CONTROL.search(secret):
        remedy = "write it without (a YAML block | ends with one, and so does what Enter ends for encrypt_string)"
        yield "has a line end or another control character", remedy
    elif not isinstance(secret, int) and not is_text(secret):
        yield "is no text", QUOTES


def _plain(secret: Any) -> Any:
    """Return a secret as it will be written. Before Ansible 2.19 a vault's secret is an object and no text."""
    return str(secret) if getattr(secret, "__ENCRYPTED__", False) else secret
