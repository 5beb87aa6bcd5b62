# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI options of Nova's nodes. If these fail, a card that was asked for never reaches a guest, or a scheduler stops.

What a service then has is Nova's own word in tests/unit/parity.

Tests openstack/filters.py, openstack/migration.py, openstack/options.py, openstack/pci.py, openstack/releases.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import filters, options, pci, releases
from ansible_collections.hetero.compute.plugins.modules.nova_pci import work

K2 = {"vendor_id": "10de", "product_id": "11bf"}
A1 = dict(K2, name="a1")
CONF = "etc/nova/nova.conf"
#: How Debian's services are started.
DEBIAN = "nova-scheduler --config-file=/etc/nova/nova.conf"


@pytest.fixture
def node(tmp_path):
    """A machine's files, with an empty nova.conf."""
    (tmp_path / "etc/nova").mkdir(parents=True)
    (tmp_path / CONF).write_text("[DEFAULT]\n")
    (tmp_path / "etc/nova/api-paste.ini").write_text("[composite:metadata]\nuse = egg:Paste#urlmap\n")
    return tmp_path


def run(node, kind, check=False, **more):
    params = dict(
        kind=kind, aliases=[A1], device_specs=[K2], migrate=False, state="present", release="34", root=str(node)
    )
    return work(dict(dict.fromkeys(("command", "wsgi", "environment", "home")), **{**params, **more}), check)


def test_a_fresh_node_of_each_kind(node):
    """What each kind needs lands in a file of its own, is read back, and a second run does nothing."""
    before = (node / CONF).read_text()
    for kind in ("api", "compute", "scheduler"):
        assert run(node, kind)["changed"]
        again = run(node, kind)
        assert not again["changed"]
        assert again["files"][-1].startswith("/etc/nova/nova.conf.d/hetero-pci-")
    has = run(node, "compute")["effective"]
    assert [json.loads(text) for text in has["alias"]] == [A1], "the API's alias was written twice"
    assert [json.loads(text) for text in has["device_spec"]] == [K2]
    assert has["enabled_filters"] == [*filters.defaults(34), filters.PCI]
    assert (node / CONF).read_text() == before
    for kind in ("api", "compute", "scheduler"):
        assert run(node, kind, state="absent")["changed"]
        assert not run(node, kind, state="absent")["changed"]
    assert os.listdir(node / "etc/nova/nova.conf.d") == []


def test_where_debian_reads_nova_conf_last_the_filters_are_changed_there(node):
    """A drop-in with the filters is read first there, and would change nothing."""
    (node / CONF).write_text(
        "[filter_scheduler]\nenabled_filters = ComputeFilter, NUMATopologyFilter,\nhost_subset_size = 2\n"
    )
    (node / "etc/nova/nova.conf.d").mkdir()
    result = run(node, "scheduler", command=DEBIAN)
    assert result["effective"]["enabled_filters"] == ["ComputeFilter", "NUMATopologyFilter", "PciPassthroughFilter"]
    assert result["elsewhere"][0]["effect"] == "overridden"
    assert not run(node, "scheduler", command=DEBIAN)["changed"]
    # the user's own line goes on counting
    text = (node / CONF).read_text()
    (node / CONF).write_text(text.replace("ComputeFilter, NUMA", "ComputeFilter, IoOpsFilter, NUMA", 1))
    assert "IoOpsFilter" in run(node, "scheduler", command=DEBIAN)["effective"]["enabled_filters"]
    assert run(node, "scheduler", command=DEBIAN, state="absent")["changed"]
    assert "PciPassthroughFilter" not in (node / CONF).read_text()


def test_a_config_dir_turns_nova_conf_d_off(node):
    (node / "etc/nova/nova.conf.d").mkdir()
    (node / "srv").mkdir()
    command = "nova-compute --config-file /etc/nova/nova.conf --config-dir /srv"
    result = run(node, "compute", command=command)
    assert result["files"] == ["/etc/nova/nova.conf", "/srv/hetero-pci-compute.conf"]
    with pytest.raises(BadInput, match=r"^/gone: does not exist"):
        run(node, "compute", command="nova-compute --config-dir=/gone")


def test_old_releases_have_old_names_and_no_drop_ins(node):
    """Havana reads nova.conf and nothing beside it; its names are in [DEFAULT]."""
    assert run(node, "compute", release="havana", command="nova-compute --config-file=/etc/nova/nova.conf")["changed"]
    text = (node / CONF).read_text()
    assert 'pci_alias = {"vendor_id": "10de", "product_id": "11bf", "name": "a1"}\n' in text
    assert "pci_passthrough_whitelist = " in text
    assert not (node / "etc/nova/nova.conf.d").exists()
    assert "RamFilter" in run(node, "scheduler", release="8")["effective"]["enabled_filters"]
    assert "scheduler_default_filters = " in (node / CONF).read_text()
    # an upgrade: what is ours moves on, and what is the user's keeps its name, for both together would be doubled
    users = '[DEFAULT]\npci_passthrough_whitelist = {"vendor_id": "8086"}\n'
    (node / CONF).write_text((node / CONF).read_text() + users)
    result = run(node, "compute", release="wallaby")
    assert len(result["effective"]["device_spec"]) == 2
    assert not any("half migrated" in note for note in result["notes"])
    text = (node / CONF).read_text()
    assert text.count("pci_passthrough_whitelist = ") == 2
    assert "pci_alias" not in text


def test_filters_that_are_gone_are_left_out_and_said(node):
    """One name that Nova has no more stops nova-scheduler (SchedulerHostFilterNotFound)."""
    (node / CONF).write_text(
        "[filter_scheduler]\nenabled_filters = RamFilter,ComputeFilter,AvailabilityZoneFilter,Own\n"
    )
    result = run(node, "scheduler")
    assert result["effective"]["enabled_filters"] == ["ComputeFilter", "Own", "PciPassthroughFilter"]
    notes = "\n".join(result["notes"])
    assert "RamFilter is left out of the filters: gone since Nova 20: Placement counts that now" in notes
    assert "AvailabilityZoneFilter is left out of the filters: gone since Nova 28" in notes
    assert "Own is among the filters: Nova has no such filter" in notes
    assert "-enabled_filters = RamFilter,ComputeFilter,AvailabilityZoneFilter,Own\n" in result["patch"]


def test_available_filters_of_the_users_own(node):
    """Whoever lists filters by class must get ours listed, or the scheduler does not start."""
    (node / CONF).write_text("[filter_scheduler]\navailable_filters = mine.Own\nenabled_filters = Own\n")
    result = run(node, "scheduler")
    assert result["effective"]["available_filters"] == ["mine.Own", filters.PCI_CLASS]
    assert filters.lost(result["effective"]["enabled_filters"], result["effective"]["available_filters"], 34) == {}


HALFWAY = f"""\
[DEFAULT]
pci_alias = {json.dumps(A1)}
pci_passthrough_whitelist = [{json.dumps(K2)}, {{"vendor_id": "8086", "product_id": "1520"}}]
scheduler_available_filters = nova.scheduler.filters.all_filters
scheduler_available_filters = mine.Own
scheduler_default_filters = RamFilter,ComputeFilter,Own,PciPassthroughFilter
rabbit_password = s3cret

[pci]
alias = {{"product_id": "11BF", "vendor_id": "10DE", "name": "a1"}}
device_spec = {json.dumps(K2)}
"""


def test_a_half_migrated_file_is_shown_as_a_patch_and_migrated_when_asked(node):
    """Old and new names together double every device; of the old filters nothing is read at all."""
    (node / CONF).write_text(HALFWAY)
    patched = HALFWAY
    for kind in ("compute", "scheduler"):
        (node / CONF).write_text(patched)
        shown = run(node, kind, check=True)
        assert "s3cret" not in json.dumps(shown)
        if kind == "compute":
            assert [json.loads(text)["name"] for text in shown["effective"]["alias"]] == ["a1", "a1"]
            assert sum("half migrated" in note for note in shown["notes"]) == 2
            assert "-pci_alias" in shown["patch"]
        else:
            assert any("Nova 34 does not read scheduler_default_filters" in note for note in shown["notes"])
            assert "+enabled_filters = ComputeFilter,Own,PciPassthroughFilter" in shown["patch"]
        # the patch is one: applied, it makes of the file what `migrate` makes of it
        (node / "shown").write_text(patched)
        patch = shown["patch"].replace("/etc/nova/nova.conf", "shown")
        subprocess.run(["git", "apply", "-p0", "--unidiff-zero"], cwd=node, input=patch, text=True, check=True)
        patched = (node / "shown").read_text()
        result = run(node, kind, migrate=True)
        assert (node / CONF).read_text() == patched
        assert result["changed"]
        assert "s3cret" not in json.dumps(result)
        again = run(node, kind, migrate=True)
        assert not again["changed"]
        assert again["patch"] == ""
    effective = result["effective"]
    assert len(effective["alias"]) == 1
    assert [json.loads(text)["vendor_id"] for text in effective["device_spec"]] == ["10de", "8086"]
    assert effective["enabled_filters"] == ["ComputeFilter", "Own", "PciPassthroughFilter"]
    assert effective["available_filters"] == [filters.ALL, "mine.Own"]
    assert "rabbit_password = s3cret" in (node / CONF).read_text()


@pytest.mark.parametrize(
    ("text", "error", "what"),
    [
        (f"[pci]\nalias = [{json.dumps(A1)}]\n", BadInput, "line 2: is a list, and Nova takes one alias a line"),
        ("[pci]\nalias = {a1}\n", BadInput, "line 2: '{a1}' is no JSON"),
        (
            '[pci]\nalias = {"name": "a1", "vendor_id": "8086", "product_id": "1520"}\n',
            Refused,
            "line 2: there is another",
        ),
        ("[pci]\nalias = $mine\n", BadInput, r"line 2: holds \$mine, which Nova replaces"),
    ],
)
def test_what_nova_would_refuse_or_mix_up_stops_us_first(node, text, error, what):
    (node / CONF).write_text(text)
    with pytest.raises(error, match=what):
        run(node, "api")
    assert (node / CONF).read_text() == text


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (dict(aliases=[{"name": "a1"}]), "alias a1 has no vendor_id"),
        (dict(aliases=[dict(A1, vendor_id="10d")]), "is not four hexadecimal digits"),
        (dict(aliases=[dict(A1, device_type="PF")]), "device_type 'PF' of alias a1"),
        (dict(aliases=[dict(A1, colour="red")]), "unknown key 'colour'"),
        (dict(device_specs=[dict(K2, address="85:00:00:0.0")]), "more than three colons"),
        (dict(device_specs=[dict(K2, address={"bus": "["})]), "is no regular expression"),
        (dict(device_specs=[dict(K2, managed="perhaps")]), "managed 'perhaps'"),
        (dict(release="7"), "is no release of Nova"),
    ],
)
def test_what_is_asked_for_is_checked_before_anything_is_written(node, asked, what):
    with pytest.raises(BadInput, match=what):
        run(node, "compute", **asked)
    assert not (node / "etc/nova/nova.conf.d").exists()


def test_check_mode_shows_the_lines_and_writes_nothing(node):
    result = run(node, "compute", check=True)
    assert result["changed"]
    assert len(result["effective"]["device_spec"]) == 1
    assert any("device_spec" in line for line in result["diff"][0]["after"].splitlines())
    assert not (node / "etc/nova/nova.conf.d").exists()


def test_a_dollar_sign_survives(node):
    """Regular expressions have them, and Nova takes them for the beginning of an option's name."""
    spec = dict(K2, address={"slot": "0[0-1]$", "function": "$domain"})
    result = run(node, "compute", device_specs=[spec])
    assert [json.loads(text) for text in result["effective"]["device_spec"]] == [spec]


def test_a_file_that_somebody_else_writes_meanwhile_is_found(node, monkeypatch):
    """Nothing is reported done that was not read back."""
    write = pci.write

    def raced(plan, tree):
        write(plan, tree)
        (node / "etc/nova/nova.conf.d/zz.conf").write_text("[pci]\nalias = {}\n")

    monkeypatch.setattr(pci, "write", raced)
    with pytest.raises(HeteroError, match="has another alias than was written"):
        run(node, "api")


def test_the_running_service_says_how_it_was_started(tmp_path):
    """Guessing the command line would put the options where nobody reads them."""
    script = tmp_path / "nova-compute"
    script.write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    argv = [sys.executable, script, "--config-file", "/srv/nova.conf"]
    env = dict(os.environ, HOME="/srv/nova", OS_NOVA_CONFIG_DIR="/srv")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        process.stdout.readline()
        found = options.of_process("compute", 34)
        process.stdin.close()
    assert (found.command, found.home, found.found) == ("nova-compute --config-file /srv/nova.conf", "/srv/nova", True)
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cmdline").write_bytes(
        b"/usr/bin/uwsgi_python3\0--ini\0/etc/nova/nova-api.ini\0--pyargv\0--config-dir /x\0"
    )
    (tmp_path / "7/environ").write_bytes(b"OS_NOVA_CONFIG_FILES=a.conf;b.conf\0")
    found = options.of_process("api", 34, str(tmp_path))
    assert (found.wsgi, found.arguments) == (True, ("--config-dir", "/x"))
    assert found.environment == {"OS_NOVA_CONFIG_FILES": "a.conf;b.conf"}


def test_releases_by_name_and_number():
    assert [releases.number(text) for text in ("Havana", "liberty", "34", "33.0.1", "gazpacho")] == [8, 12, 34, 33, 33]
    for text in ("grizzly", "7", "35", ""):
        with pytest.raises(BadInput, match="is no release"):
            releases.number(text)
