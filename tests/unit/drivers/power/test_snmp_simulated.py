# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver snmp on an agent that is no net-snmp: snmpsim plays a MasterSwitch that refuses, behind lines that are bad."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp import SYS_OBJECT_ID
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp_tables import APC, TABLES

(COLUMN,) = [table.state for table in TABLES if table.name == "MasterSwitch"]
COMMUNITY = "pri vate#"
#: snmpsim's records: object, type, value. Type 2 is an integer, 4 a string, 6 an object's name; the word behind `:`
#: says how it is written to. The file's name is the community.
RECORDS = f"""\
{SYS_OBJECT_ID}|6|{APC}.1.3.2.11
{COLUMN}.1|2:writecache|value=2
{COLUMN}.2|2:writecache|value=2
{COLUMN}.3|2:error|op=set,status=wrongType,value=2
{COLUMN}.4|2:error|op=set,status=notWritable,value=2
{COLUMN}.5|4|on
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The port of a running snmpsim. Its outlets 1 and 2 switch, 3 and 4 refuse, and the state of 5 is no number."""
    folder = tmp_path_factory.mktemp("snmpsim")
    program = shutil.which("snmpsim-command-responder", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert program, "snmpsim is not installed: run tools/setup test"
    (folder / "data").mkdir()
    (folder / "data" / f"{COMMUNITY}.snmprec").write_text(RECORDS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    argv = [program, f"--data-dir={folder / 'data'}", f"--cache-dir={folder / 'cache'}"]
    argv += [f"--agent-udpv4-endpoint=127.0.0.1:{port}", "--process-user=root", "--process-group=root"]
    said = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            for line in process.stdout:
                said.append(line)
                if "Listening at" in line:
                    break
            assert process.poll() is None, "".join(said)
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield port
        finally:
            process.kill()


@contextlib.contextmanager
def relay(port, passed):
    """The port of a line to the agent.

    :param passed: called with (question, answer) for each answer; the datagrams that the asker gets.
    """
    kind = socket.AF_INET, socket.SOCK_DGRAM
    with socket.socket(*kind) as near, socket.socket(*kind) as far, socket.socket(*kind) as end:
        for one in (near, end):
            one.bind(("127.0.0.1", 0))
        far.connect(("127.0.0.1", port))

        def run():
            question = asker = None
            while True:
                ready = select.select([near, far, end], [], [])[0]
                if end in ready:
                    return
                if near in ready:
                    question, asker = near.recvfrom(65535)
                    far.send(question)
                if far in ready:
                    for datagram in passed(question, far.recv(65535)):
                        near.sendto(datagram, asker)

        line = threading.Thread(target=run)
        line.start()
        try:
            yield near.getsockname()[1]
        finally:
            near.sendto(b"end", end.getsockname())
            line.join()


#: The tag of a SetRequest (RFC 3416, 3).
SET = 0xA3


def tag(message):
    """The tag of what a message of version 1 or 2c asks: it follows the community (RFC 1901, 3).

    Any byte may be in the number of a request behind it, so that one is not to be looked for in the message.
    """
    start = 2 if message[1] < 0x80 else 2 + message[1] - 0x80  # short or long form of the message's length
    community = start + 3  # behind the version, an integer of one byte
    return message[community + 2 + message[community + 1]]


def batch(port, folder, wanted=None, seconds=90.0, version="1", community=COMMUNITY, **options):
    settings = {"driver": "snmp", "host": "127.0.0.1", "port": port, "snmp_version": version}
    deadline = Deadline(seconds)
    with power.session("pdu-t", settings, {"community": community}, deadline, str(folder)) as session:
        return power.set_outlets(session, wanted, deadline, **options) if wanted else session.status()


@pytest.mark.parametrize("version", ["1", "2c"])
def test_switches_and_reads_back(agent, tmp_path, version):
    """Without it, our SNMP might only agree with net-snmp's agent and our own."""
    before = batch(agent, tmp_path)["2"]
    batch(agent, tmp_path, {"1": "off"}, version=version)
    seen = batch(agent, tmp_path, {"1": "on", "2": "cycled"}, version=version)
    assert [(seen[outlet]["before"], seen[outlet]["after"]) for outlet in ("1", "2")] == [("off", "on"), (before, "on")]
    status = batch(agent, tmp_path, version=version)
    assert [outlet for outlet, state in status.items() if state == "on"] == ["1", "2"]


def test_an_outlet_whose_state_is_no_number(agent, tmp_path):
    """Without it, an outlet that cannot be read would be told as one that the PDU does not have."""
    assert batch(agent, tmp_path)["5"] == 'unknown ("on")'


@pytest.mark.parametrize(
    ("version", "outlet", "word"), [("2c", "3", "wrongType"), ("2c", "4", "notWritable"), ("1", "3", "badValue")]
)
def test_an_object_that_refuses(agent, tmp_path, version, outlet, word):
    """Without it, the PDU's own reason would be lost, or its refusal taken for success."""
    with pytest.raises(power.OutletsFailed, match=rf"outlet {outlet} of pdu-t: still off .*{word}"):
        batch(agent, tmp_path, {outlet: "on"}, version=version)


def test_a_wrong_community(agent, tmp_path):
    """Without it, a mistyped community would hold a play for ever."""
    with pytest.raises(TimedOut, match=r"pdu-t: no answer by SNMP .*another community") as caught:
        batch(agent, tmp_path, {"1": "on"}, seconds=1.0, community="hush-hush-7")
    assert "hush-hush-7" not in repr(caught.value.failure)


def test_answers_twice_and_too_late(agent, tmp_path):
    """Without it, the answer to an earlier question would be taken for what the outlet is now."""
    answers = []

    def passed(_question, answer):
        answers.append(answer)
        return [*answers[-4:-1], answer, answer]

    batch(agent, tmp_path, {"1": "off"})
    with relay(agent, passed) as port:
        assert batch(port, tmp_path, {"1": "on"})["1"]["after"] == "on"
        assert batch(port, tmp_path, {"1": "off"})["1"]["after"] == "off"
    assert len(answers) > 6


def test_a_line_that_breaks_at_the_order(agent, tmp_path):
    """Without it, an outlet that was switched would be told as one that was not."""
    batch(agent, tmp_path, {"2": "on"})
    orders = []

    def passed(question, answer):
        if tag(question) == SET:
            orders.append(question)
        return [] if orders else [answer]

    with relay(agent, passed) as port, pytest.raises(power.OutletsFailed) as caught:
        batch(port, tmp_path, {"2": "off"}, seconds=15)
    assert orders
    assert "outlet 2 of pdu-t: 'off' may have been carried out or not, as the PDU was lost" in str(caught.value)
    assert batch(agent, tmp_path)["2"] == "off"


def test_garbage_is_no_answer(agent, tmp_path):
    """Without it, a broken agent would be a traceback."""
    half = relay(agent, lambda _question, answer: [answer[: len(answer) // 2]])
    with half as port, pytest.raises(HeteroError, match="pdu-t: no answer by SNMP"):
        batch(port, tmp_path, seconds=1.0)
