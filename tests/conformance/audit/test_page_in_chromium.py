"""The audit dashboard's pages in a real browser: Debian's Chromium shows a prepared dashboard in
several states (for example with a silent host)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from support.browser import Browser, browser
from support.dashboard_site import LOST, MINUTE, NOW, STATES
from support.processes import eventually
from support.served import served

pytestmark = pytest.mark.foreign

WIDTHS = (400, 700, 1_000, 1_400, 2_000)
BUCKET = f"/buckets?topic=dc1.orders&bucket={NOW // MINUTE * MINUTE - 6 * MINUTE}"
ROOMS = (
    "/", "/?by=hour", "/?by=day", "/topics", "/hosts", "/loads", "/mirrors", "/rejects",
    "/search?q=app", "/buckets", BUCKET, f"/buckets?topic=dc1.nginx&bucket={LOST}",
)  # fmt: skip

OVERFLOW = """
const width = document.documentElement.clientWidth;
return document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("body *")]
    .filter(x => x.getBoundingClientRect().right > width + 1)
    .filter(x => !x.closest(".scroll, .hidden, .skip"))
    .map(x => x.outerHTML.slice(0, 120)).slice(0, 5).concat(["the window scrolls"]);
"""
CONTRAST = """
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const parts = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
function behind(element) {
    for (let x = element; x; x = x.parentElement) {
        const found = parts(getComputedStyle(x).backgroundColor);
        if (found.length === 3 || found[3] === 1) return found;
        if (found[3] !== 0) throw new Error("a background that is partly transparent");
    }
    throw new Error("no background");
}
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let texts = 0;
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    texts += 1;
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort();
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(ratio.toFixed(2) + " " + element.outerHTML.slice(0, 100));
}
return [texts, poor.slice(0, 5)];
"""
RISKS = """
return [...document.querySelectorAll("[aria-labelledby=t-at_risk].scroll")]
    .map(x => x.scrollWidth <= x.clientWidth);
"""
OUTLINE = """
return [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(x => Number(x.tagName[1]));
"""
NAMELESS = """
const name = x => (x.getAttribute("aria-label") || x.innerText || x.textContent || "").trim();
return [...document.querySelectorAll("a, button")].filter(x => !name(x)).map(x => x.outerHTML)
    .concat([...document.querySelectorAll("table")].filter(x => !x.caption).map(x => x.outerHTML))
    .concat([...document.querySelectorAll("input")].filter(x => !x.labels.length).map(x => x.name))
    .concat([...document.querySelectorAll("[id]")].map(x => x.id)
        .filter((x, i, all) => all.indexOf(x) !== i));
"""
ROLES = "return ['header', 'main', 'footer', 'nav'].filter(x => !document.querySelector(x));"
FOCUS = """
const x = document.activeElement, style = getComputedStyle(x);
const isVisible = style.outlineStyle !== "none" && style.outlineWidth !== "0px";
return [x.tagName, x.getAttribute("href"), isVisible];
"""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module", params=STATES)
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with served(STATES[request.param]()) as found:
        yield found


def test_no_page_is_wider_than_its_window(window: Browser, address: str) -> None:
    """In every state of the dashboard and in windows of 400 to 2,000 pixels, no page makes the
    window scroll sideways. Wide tables may scroll within their own frames."""
    for path in ROOMS:
        window.open(address + path)
        for width in WIDTHS:
            window.resize(width)
            assert window.run(OVERFLOW) == [], f"{path} at {width}"


def test_the_command_beside_a_risk_needs_no_scrolling(window: Browser, address: str) -> None:
    """In every state of the dashboard, and in windows of 400 to 2,000 pixels, the table "At risk"
    of the first page needs no scrolling sideways. So the file's path and the command to run next
    are visible in each row."""
    window.open(address)
    for width in WIDTHS:
        window.resize(width)
        assert window.run(RISKS) == [True], width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(window: Browser, address: str, scheme: str) -> None:
    """In every state of the dashboard, in the light and in the dark color scheme, each text has a
    contrast of at least 4.5 to 1 (WCAG 2.2, AA)."""
    window.resize(1_400)
    window.prefer(scheme)
    shades = set()
    for path in ROOMS:
        window.open(address + path)
        shades.add(window.run("return getComputedStyle(document.body).backgroundColor"))
        texts, poor = window.run(CONTRAST)
        assert texts > 10, path
        assert poor == [], path
    assert shades == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)"}


def test_pages_have_an_outline_and_names(window: Browser, address: str) -> None:
    """The headings of each page begin with an h1, and none is more than one level below the heading
    before it. Each page has the landmarks header, main, footer and nav. Every link, button, field
    and table has a name, and every id is used once."""
    for path in ROOMS:
        window.open(address + path)
        levels = window.run(OUTLINE)
        assert levels[0] == 1, path
        assert all(low - high <= 1 for high, low in pairwise(levels)), path
        assert window.run(NAMELESS) == [], path
        assert window.run(ROLES) == [], path


def test_a_cell_opens_with_the_keyboard_alone(window: Browser) -> None:
    """The Tab key moves the focus first to the link that skips to the content, and later to a cell
    of the grid. The focus is visible at each step. Enter opens the cell that has the focus."""
    with served(STATES["incidents"]()) as address:
        window.resize(1_400)
        window.open(address)
        window.press("Tab")
        assert window.run(FOCUS) == ["A", "#main", True]
        window.press("Enter")
        assert window.run("return document.activeElement.id") == "main"
        for _ in range(200):
            window.press("Tab")
            tag, href, is_visible = window.run(FOCUS)
            assert is_visible, href
            if (
                tag == "A"
                and "bucket=" in (href or "")
                and window.run("return document.activeElement.closest('table.grid td') !== null")
            ):
                break
        else:
            raise AssertionError("Tab reached no cell")
        window.press("Enter")
        eventually(lambda: "bucket=" in window.url(), what="the cell opened")
        assert "Why, and what next" in window.run("return document.body.innerText")


def test_the_page_runs_without_scripts(window: Browser) -> None:
    """If the browser runs no scripts, the page still shows its content, and reloads itself."""
    with served(STATES["incidents"]()) as address:
        window.allow_scripts(False)
        try:
            window.open(address)
            refresh = "return document.querySelectorAll('noscript meta[http-equiv=refresh]').length"
            assert window.run(refresh) == 1
            assert window.run("return document.querySelectorAll('table.grid td a').length") > 50
            assert window.run("return document.querySelectorAll('button.live').length") == 0
        finally:
            window.allow_scripts(True)


def test_an_open_page_follows_and_keeps_the_focus(window: Browser) -> None:
    """An open page shows new results without a reload, and the focus stays where it is. If somebody
    clicks the button that shows whether these updates are on, it says that they are off."""
    site = STATES["complete"]()
    with served(site) as address:
        window.open(f"{address}/?by=minute#grid")
        window.run("window.marked = true; document.querySelector('table.grid td a').focus()")
        href = window.run("return document.activeElement.getAttribute('href')")
        before = window.run("return document.getElementById('state').textContent")
        site.judge_again(NOW + 60_000)
        changed = "return document.getElementById('state').textContent"
        eventually(lambda: window.run(changed) != before, what="the page follows")
        assert window.run("return window.marked") is True
        assert window.run("return document.activeElement.getAttribute('href')") == href
        window.run("document.querySelector('button.live').click()")
        said = window.run("return document.querySelector('button.live').textContent")
        assert said == "Live: off"


def test_a_narrow_window_shows_the_newest_columns(window: Browser) -> None:
    """A narrow window shows only the newest columns of the grid; a wide window shows all
    columns."""
    shown = """
        return [...document.querySelectorAll('.grid tbody tr:first-child td')]
            .map((x, i) => x.checkVisibility() ? i : -1).filter(i => i >= 0);
    """
    with served(STATES["incidents"]()) as address:
        window.open(address)
        window.resize(400)
        assert window.run(shown) == list(range(19, 24))
        window.resize(2_000)
        assert window.run(shown) == list(range(24))
