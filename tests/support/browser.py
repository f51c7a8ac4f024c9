"""A headless Chromium that talks to nobody but the page it is given."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def installed() -> bool:
    """Whether there is a browser to test with."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return False
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


@contextlib.contextmanager
def browser(width: int = 1440, height: int = 1000, dark: bool = False) -> Iterator[Any]:
    """A WebDriver whose profile is new, and gone afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory(prefix="um-browser-") as profile:
        for each in (*QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(each)
        if dark:
            options.add_argument("--force-dark-mode")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        environment = {**os.environ, "HOME": profile, "XDG_CONFIG_HOME": profile, "XDG_CACHE_HOME": profile}
        service = Service(shutil.which("chromedriver") or "", env=environment)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
            )
            features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            yield driver
        finally:
            driver.quit()


def wait(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the condition gives once it is true; the last thing it gave when it never was is in the error."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {condition}: {found!r}"
        time.sleep(0.1)


def text_of(driver: Any, selector: str = "main") -> str:
    """The text that a person sees there."""
    return str(driver.execute_script("return document.querySelector(arguments[0])?.innerText || ''", selector))


def complaints(driver: Any) -> list[str]:
    """Errors and violations of the policy that the browser has noted."""
    return [each["message"] for each in driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]


def picture(driver: Any, path: Path) -> None:
    """What is seen, as a PNG file."""
    driver.save_screenshot(str(path))
