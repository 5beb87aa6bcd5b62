# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page. If these fail, operators see a wrong board in a slot, or a tenant's text runs in their browser.

Tests plugin_utils/page/jinja.py, plugin_utils/page/rack.py, plugin_utils/page/timeline.py.
"""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess
import sys

import pytest
from ansible.errors import AnsibleFilterError
from jinja2 import TemplateSyntaxError, UndefinedError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.page import rack, timeline
from ansible_collections.hetero.compute.plugins.plugin_utils.page.jinja import FOLDER, environment, render
from ansible_collections.hetero.compute.plugins.plugin_utils.page.page import status_page as page_of
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import Site, lab

HOSTILE = [
    "<script>document.title='gone'</script>",
    '"><img src=x onerror="document.title=\'gone\'">',
    "' onmouseover='alert(1)",
    "</style></title></textarea><svg onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt; &amp; {{ 7 * 7 }} {% raw %}",
]
#: A console may send anything: erase the screen, ring, NUL, text that runs backwards, half a surrogate pair.
CONTROLS = "\x1b[2J\x07\x00\u202egnp.exe\ud800"
ELEMENTS = re.compile(
    "html|head|meta|title|style|body|main|header|h[123]|span|time|ul|li|b|section|div|small|table|thead|tbody|tr|th|td|"
    "svg|g|rect|line|text|details|summary|pre|p"
)


class Page(html.parser.HTMLParser):
    """What a browser makes of a page: elements, attributes and texts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.texts, self.cells, self.open = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "li" and "tiles" not in str(self.open):
            self.cells.append([dict(attrs).get("class")])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.texts.append(data)
        if "li" in self.open:
            self.cells[-1].append(data)


def spoiled(value, text):
    """A result of board_info in which each text, whatever it was, is `text`; states stay, or no row would be shown."""
    if isinstance(value, dict):
        return {key: part if key in ("state", "phase") else spoiled(part, text) for key, part in value.items()}
    if isinstance(value, list):
        return [spoiled(part, text) for part in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_from_outside_stay_texts(tmp_path, text):
    """An instance's name, a note, an event, a console's last words, a proxy's name: all of them are foreign."""
    found = snapshots([dict(spoiled(lab(tmp_path / "lab").result(), text), item=text), dict(item="p2", msg=text)])
    written = status_page(found, title=text)
    page = Page(written)
    assert not page.open
    assert all(ELEMENTS.fullmatch(element) for element in page.elements)
    assert not [name for name, value in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert sum(text in shown for shown in page.texts) > 50
    assert written.count("<style>") == 1


@pytest.mark.parametrize("text", [*HOSTILE, CONTROLS])
def test_every_place_of_every_template_escapes(text):
    """Each value that a template shows is put through cleaning and escaping, in elements and in attributes."""
    shown = environment().from_string("<p title=\"{{ value }}\">{{ value }}</p><b title='{{ value }}'></b>")
    page = Page(shown.render(value=text))
    assert page.elements == ["p", "b"]
    assert [name for name, value in page.attributes] == ["title", "title"]
    assert [value for name, value in page.attributes] == [*page.texts, *page.texts]
    assert page.texts == [text.replace("\x1b", r"\x1b").replace("\x07", r"\x07").replace("\x00", r"\x00")
                          .replace("\u202e", r"\u202e").replace("\ud800", r"\ud800")]  # fmt: skip


def test_no_template_goes_around_the_escaping():
    """Autoescape is worth nothing beside one `safe`; an attribute without quotes ends at the first blank."""
    templates = {path.name: path.read_text() for path in FOLDER.glob("*.j2")}
    assert "page.html.j2" in templates
    for name, text in templates.items():
        assert not re.search(r"\|\s*safe\b|autoescape|Markup|\{%-?\s*(raw|set|filter)\b", text), name
        assert not re.search(r"=\{[{%]", re.sub(r"\{%.*?%\}", "", text)), name
        # all that is shown is looked up by its name: no filter, no concatenation, nothing that could be Markup
        assert all(
            re.fullmatch(r"[a-z_]+(\.[a-z_]+)*|[a-z_]+\(.*\)", place.strip())
            for place in re.findall(r"\{\{(.*?)\}\}", text)
        ), name


def test_a_slip_in_a_template_is_an_error_of_its_line(tmp_path):
    """What is not handed over is no empty cell; and the line that an error names is the template's own."""
    with pytest.raises(UndefinedError):
        render("racks.html.j2")
    source = "<p>\n  <b>1</b>\n\n  {% if %}\n</p>"
    with pytest.raises(TemplateSyntaxError) as slip:
        environment().from_string(source)
    assert slip.value.lineno == 4
    assert environment().from_string("<p>\n  <b>\n    a\n b</b>\n</p>\n").render() == "<p><b>\n    a\n b</b></p>"


def test_the_templates_lie_beside_the_code(tmp_path):
    """A collection is installed anywhere, and an execution environment's is nobody's working directory."""
    copy = tmp_path / "ansible_collections" / "hetero" / "compute" / "plugins"
    for part in ("plugin_utils", "module_utils"):
        shutil.copytree(FOLDER.parents[2] / part, copy / part)
    name = "ansible_collections.hetero.compute.plugins.plugin_utils.page.page"
    program = f"from {name} import status_page; print(status_page({{}}, title='moved')); import {name} as it; print(it)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd="/", env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=True, timeout=600,
    )  # fmt: skip
    assert "<title>moved</title>" in done.stdout
    assert str(copy) in done.stdout


def test_control_characters_are_shown_as_what_they_are(tmp_path):
    """A console's escape sequences are no reason for a page that cannot be written, or that reads backwards."""
    written = status_page(snapshots([spoiled(lab(tmp_path / "lab").result(), f"a{CONTROLS}\nb"), dict(item="x")]))
    assert not set(CONTROLS) & set(written) - set("[2Jgnp.exe")
    assert r"a\x1b[2J\x07\x00\u202egnp.exe\ud800" in written
    assert written.encode("utf-8")


def test_a_long_text_is_cut(tmp_path):
    """A megabyte in a note makes no page of 40 megabytes."""
    found = lab(tmp_path / "lab").result()
    size = len(status_page(snapshots([found])))
    assert len(status_page(snapshots([spoiled(found, "x" * 10**6)]))) < size + 10**6


def test_nothing_is_loaded_from_elsewhere(tmp_path):
    """The page is read where there is no way to the net, and tells nobody that it is read."""
    written = status_page(snapshots([lab(tmp_path / "lab").result()]))
    assert not re.search(r"url\(|@import|https?:|<script|<link|<iframe", written)
    policy = dict(Page(written).attributes[:4])["content"].split("; ")
    assert policy == ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'"]


def test_each_board_is_in_its_outlet(tmp_path):
    """Who pulls a plug by this page pulls the right one: PDUs by name, outlets by number, each with board and state."""
    page = Page(status_page(snapshots([lab(tmp_path / "lab").result()])))
    racks = [cell for cell in page.cells if cell[1].startswith("board") and len(cell) > 3]
    assert [(cell[0], cell[1], cell[2], cell[3]) for cell in racks] == [
        ("error", "board4", "1", "stalled at tftp after 41 s, twice"),
        ("booting", "board3", "2", "carol"),
        ("free", "board2", "3", "-"),
        ("running", "board1", "4", "ml-7"),
        ("running", "board0", "5", "jackie"),
        ("free", "board9", "1", "-"),
        ("leaving", "board8", "2", "eve"),
        ("away", "board7", "3", "new fan ordered"),
        ("running", "board6", "4", "ci-runner-3"),
        ("free", "board5", "5", "-"),
    ]
    assert page.texts.index("pdu-a") < page.texts.index("pdu-b")
    counts = {cell[2]: cell[1] for cell in page.cells if len(cell) == 3}
    assert counts == {
        "boards": "10", "running": "3", "booting": "1", "shutting down": "1", "free": "3", "error": "1",
        "maintenance": "1",
    }  # fmt: skip
    assert [text for text in page.texts if "Kernel panic" in text], "the console's last words are missing"


def test_outlets_are_numbers(tmp_path):
    """Outlet 10 comes after outlet 9, not after outlet 1."""
    page = Page(status_page(snapshots([Site(tmp_path / "site", 12, 12).result()])))
    cells = [cell[2] for cell in page.cells if cell[1].startswith("board") and len(cell) > 3]
    assert cells == [str(number) for number in range(1, 13)]


def test_not_all_that_is_called_a_digit_is_a_number():
    """A superscript two in a PDU's name was handed to int(), and there was no page."""
    assert sorted(["pdu10", "pdu²", "pdu9", "pdu٣"], key=rack.natural) == ["pdu9", "pdu10", "pdu²", "pdu٣"]


def event(phase, seconds, instance="jackie"):
    return {"phase": phase, "seconds": seconds, "instance": instance}


BOOT = [event("power", 0.4), event("tftp", 2.2), event("nfs", 4.5), event("running", 5.4)]
PHASES = [("power", 0.4), ("tftp", 2.2), ("nfs", 4.5), ("running", 5.4)]


@pytest.mark.parametrize(
    ("events", "phases"),
    [
        (BOOT, PHASES),
        ([event("image", 0.1), *BOOT, event("state", None), event("wait", 9.0)], PHASES),
        ([event("power", 1.0), event("tftp", 3.0), event("error", None), *BOOT], PHASES),
        ([*BOOT, event("power", 0.2), event("tftp", 2.0)], PHASES),
        ([event("power", 9.0), event("running", 99.0), *BOOT], PHASES),
        (BOOT[1:], []),
        (BOOT[:-1], []),
        ([dict(part, instance="bob") for part in BOOT], []),
        ([event("power", float("nan")), *BOOT[1:]], []),
        ([event("power", 0.4), event("unpack", 40.0), event("running", 5.4)], [("power", 0.4), ("running", 5.4)]),
    ],
)
def test_the_boot_is_the_last_whole_one(events, phases):
    """A retry, a reboot that goes on, or a former tenant's boot is not shown as this instance's."""
    assert timeline.last_boot(events, "jackie") == phases


def test_the_picture_has_the_seconds_of_the_events():
    """Pieces one after the other, power on at the same place in all bars, a second as wide everywhere."""
    other = [("power", 1.2), ("running", 10.8)]
    scale = timeline.Scale([PHASES, other, []])
    boot = environment().get_template("boot.html.j2").module
    drawn = boot.picture(timeline.bar_of(PHASES, scale), scale)
    rects = re.findall(r'<rect x="([\d.]+)" y="0" width="([\d.]+)" height="20" class="p-(\w+)">', drawn)
    second = timeline.WIDTH / 12
    wanted = [("power", 0.8, 0.4), ("tftp", 1.2, 2.2), ("nfs", 3.4, 2.3), ("running", 5.7, 0.9)]
    assert [kind for left, width, kind in rects] == [kind for kind, left, width in wanted]
    for (left, width, _kind), (_same, start, length) in zip(rects, wanted):
        assert float(left) == pytest.approx(start * second, abs=0.06)
        assert float(width) == pytest.approx(length * second, abs=0.06)
    assert "power 0.4 · tftp 2.2 · nfs 4.5 · running 5.4 s" in drawn


def test_strange_times_and_nothing_at_all(tmp_path):
    """A clock in the year 300000, a board without history or PDU, no boards, no proxies: still a page."""
    found = lab(tmp_path / "lab").result()
    for board in found["boards"]:
        board.update(pdu=None, outlet=None, since_seconds=None, expires=1e13)
        board["events"] = [dict(part, time=1e13) for part in board["events"]]
    found["claims"][0]["board"] = 77
    assert "no PDU" in status_page(snapshots([found]))
    assert "the boards file does not name it" in status_page(snapshots([found]))
    assert "None." in status_page(snapshots([dict(item="p", boards=[], claims=[])]))
    assert status_page({})


def test_slips_of_the_pen():
    """A play that hands over something else is told what is wanted."""
    for wrong in ("text", {"a": 1}, [{}]):
        with pytest.raises(AnsibleFilterError, match="results of a loop"):
            snapshots(wrong)
    for wrong in ([], {"p": []}, {"p": {"boards": []}}):
        with pytest.raises(AnsibleFilterError, match="filter snapshots"):
            status_page(wrong)


def test_a_site_of_hosts_alone_has_no_empty_rack(tmp_path):
    """Lost: the first screen, to a rack without boards, at a site that has none; or the page of a site that has nothing
    yet, to an error.
    """
    proxies = snapshots([dict(lab(tmp_path / "lab").result(), item="p1")])
    host = dict(taken_at=5.0, gpus=[], instances=[], claims=[], capacity={}, error=None)
    of_boards, of_hosts, of_both = page_of(proxies), page_of({}, hosts={"gpu1": host}), page_of({})
    tiles = ["tiles" in Page(text).texts or 'class="tiles"' in text for text in (of_boards, of_hosts, of_both)]
    assert tiles == [True, False, True]
