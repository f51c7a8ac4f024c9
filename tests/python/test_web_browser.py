"""The page of `um web` in a headless Chromium: what a person sees, with keys and without a mouse, light and dark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import complaints, picture, text_of, wait
from interpreter import needs_plain_library
from made_fleet import desk_fleet
from web_pages import Page, page

from um_cffi.monitoring import Arrival, Attributes, LogLine, LogRecord, ReceiverRecord, TopicRecord, TopicState

pytestmark = [
    pytest.mark.skipif(not browser.installed(), reason="needs chromium, chromedriver and selenium"),
    needs_plain_library,
]
HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'


@pytest.fixture(name="served", scope="module")
def a_page() -> Iterator[Page]:
    fleet = desk_fleet()
    fleet.receivers[1].loss = 0.01
    with page(fleet, title='Trading <floor> & "more"') as served:
        yield served


@pytest.fixture(name="seen", scope="module")
def a_browser() -> Iterator[Any]:
    with browser.browser() as driver:
        yield driver


def opened(seen: Any, served: Page, path: str, wanted: str) -> str:
    """The text of a view once it has what is wanted."""
    seen.get(served.address.rstrip("/") + path)
    return until(seen, wanted)


def until(seen: Any, wanted: str) -> str:
    """The text of the page once it has what is wanted."""
    return str(wait(lambda: text if re.search(wanted, text := text_of(seen)) else ""))


def keys(seen: Any, *pressed: str) -> None:
    """Press keys wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    for each in pressed:
        ActionChains(seen).send_keys(each).perform()


def shapes(picture_file: Path) -> int:
    """Bytes of a picture: one of nothing is small."""
    return picture_file.stat().st_size


def test_the_first_screen_tells_who_loses_since_when_and_who_is_connected(
    seen: Any, served: Page, tmp_path: Path
) -> None:
    text = opened(seen, served, "/", "pricer on 10.1.2.11 misses datagrams")
    assert re.search(r"since \d\d:\d\d:\d\d", text)
    for part in ("prices.equities", "feed-equities", "surveillance", "Who is slow, the worst first", "missed/s"):
        assert part in text, part
    wires = seen.execute_script("return [...document.querySelectorAll('.wire')].map(e => e.dataset.tone)")
    assert len(wires) == 3 + 14 and wires.count("warn") == 1
    wait(lambda: seen.execute_script("return document.querySelectorAll('.canvas canvas').length") == 4)
    picture(seen, tmp_path / "overview.png")
    assert shapes(tmp_path / "overview.png") > 40_000
    assert seen.title.endswith('Trading <floor> & "more"')
    assert complaints(seen) == []


def test_it_is_kept_up_to_date_and_keeps_the_focus(seen: Any, served: Page) -> None:
    opened(seen, served, "/", "pricer on 10.1.2.11")
    seen.execute_script("document.querySelector('.rows a').focus(); window.mine = document.activeElement")
    before = seen.execute_script("return document.querySelector('footer').innerText")
    wait(lambda: seen.execute_script("return document.querySelector('footer').innerText") != before)
    assert seen.execute_script("return document.activeElement === window.mine && document.contains(window.mine)")


def test_every_object_has_a_link_that_opens_it(seen: Any, served: Page) -> None:
    opened(seen, served, "/", "pricer on 10.1.2.11")
    links = seen.execute_script("return [...document.querySelectorAll('.map a')].map(e => e.getAttribute('href'))")
    assert len(links) == 3 + 3 + 6
    row = served.json("/api/objects?kind=receiver&q=pricer")["list"]["rows"][0]
    text = opened(seen, served, f"/o/{row['id']}", "misses datagrams")
    assert "feed-equities" in text and "lbm msgs rcved" in text and "prices.equities" in text
    opened(seen, served, "/o/0123456789abcdef", "There is no such object")
    assert complaints(seen)[1:] == []  # the browser notes the 404 of the last one, if it asked


def test_it_can_be_used_without_a_mouse(seen: Any, served: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(seen, served, "/", "pricer on 10.1.2.11")
    keys(seen, "/")
    assert seen.execute_script("return document.activeElement.id") == "search"
    keys(seen, "surveillance", Keys.ENTER)
    until(seen, "9 objects with “surveillance”")
    assert seen.current_url.endswith("/list?q=surveillance")
    while "/o/" not in (seen.execute_script("return document.activeElement.getAttribute('href')") or ""):
        keys(seen, "j")
    keys(seen, Keys.ENTER)
    until(seen, "What it is")
    seen.back()
    until(seen, "9 objects with")
    keys(seen, "e")
    until(seen, "What has happened, the newest first")
    keys(seen, "r")
    until(seen, "14 receivers")
    keys(seen, "o")
    until(seen, "Who is connected to whom")
    keys(seen, "?")
    assert seen.execute_script("return document.getElementById('help').open")
    keys(seen, Keys.ESCAPE)
    assert not seen.execute_script("return document.getElementById('help').open")


def brightness(seen: Any) -> float:
    """Of the background, 0 to 255."""
    colour = seen.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_light_and_dark_follow_the_system_and_the_key(seen: Any, served: Page) -> None:
    opened(seen, served, "/", "Who is connected to whom")
    assert brightness(seen) > 200
    for scheme, dark in (("dark", True), ("light", False)):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        seen.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        assert (brightness(seen) < 60) == dark
    keys(seen, "t", "t")
    assert brightness(seen) < 60
    opened(seen, served, "/", "Who is connected to whom")
    assert brightness(seen) < 60  # it is remembered
    keys(seen, "t")
    assert brightness(seen) > 200


class Hostile:
    """A reception that brings names which try to be more than text."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.lines = 0

    def poll(self, timeout: float | None = None) -> list[Arrival]:
        attributes = Attributes("10.6.6.6", 0, HOSTILE, 1, 2, False, HOSTILE)
        session = "LBTRM:" + HOSTILE
        values = {"lost": int(time.monotonic() * 1000), "msgs_rcved": 1}
        made = Arrival(ReceiverRecord(attributes, "lbtrm", session, values), "127.0.0.1")
        told = Arrival(TopicRecord(attributes, HOSTILE, (TopicState(session),)), "127.0.0.1")
        self.lines += 1
        line = LogLine(self.lines, 5, f"Core-1-1: {HOSTILE}")
        logged = Arrival(LogRecord(attributes, (line,)), "127.0.0.1")
        return [*self.inner.poll(timeout), made, told, logged]

    def counts(self) -> Any:
        return self.inner.counts()


def test_names_of_strangers_are_text_and_nothing_else(seen: Any) -> None:
    from made_fleet import MadeReception

    with page(reception=Hostile(MadeReception(desk_fleet(), 0.3))) as served:
        text = opened(seen, served, "/", re.escape(HOSTILE[:20]) + "[^∎]*misses datagrams")
        assert HOSTILE in text
        for path in ("/list?kind=receiver&sort=missed", "/list?kind=topic&q=onerror", "/events", "/events?kind=log"):
            opened(seen, served, path, re.escape("onerror="))
        link = served.json("/api/objects?kind=receiver&q=onerror")["list"]["rows"][0]["id"]
        opened(seen, served, f"/o/{link}", re.escape("onerror="))
        assert seen.execute_script("return window.broken") is None
        assert seen.execute_script("return document.querySelectorAll('main img, main script').length") == 0
        assert complaints(seen) == []


def test_it_says_when_the_page_is_gone_and_comes_back_by_itself(seen: Any) -> None:
    def live() -> str:
        return str(seen.execute_script("return document.getElementById('live').dataset.state"))

    with page() as served:
        opened(seen, served, "/", "Who is connected to whom")
        wait(lambda: live() == "on")
        port = served.port
    wait(lambda: live() == "off")
    with page(port=port):
        wait(lambda: live() == "on")
    seen.get("about:blank")
    complaints(seen)


def test_ten_thousand_objects_are_drawn() -> None:
    from made_fleet import crowd

    fleet = crowd(1_000)
    fleet.receivers[500].loss = 0.05
    with browser.browser() as driver, page(fleet, interval=1.0) as served:
        text = opened(driver, served, "/", "app-500 on 10.1.4.101 misses datagrams")
        assert "not drawn" in text and "1,040" in text
        wait(lambda: driver.execute_script("return document.getElementById('live').dataset.state") == "on")
        opened(driver, served, "/list?kind=receiver", "4,000 receivers")
        opened(driver, served, "/list?kind=receiver&q=app-77", "receivers with “app-77”")
