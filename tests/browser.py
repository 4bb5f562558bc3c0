"""A headless Chromium for pages that are written: opened from their file, without a network.

``browser`` is a fixture, one for all tests of a process; where there is no Chromium its tests skip and say so.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1280,1000",
)


@dataclass(frozen=True)
class Browser:
    """``driver`` is selenium's, for what is not offered here."""

    driver: Any

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a page from its file; the console begins empty."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(file.resolve().as_uri() + (f"#{fragment}" if fragment else ""))

    def run(self, script: str, *arguments: Any) -> Any:
        """What a JavaScript function body returns, with ``arguments[k]`` for its arguments."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        """Every element that a CSS selector names."""
        return self.driver.find_elements("css selector", selector)

    def complaints(self) -> list[str]:
        """Warnings and errors on the console since the page was opened or since this was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def picture(self, file: Path, height: int = 1000, width: int = 1280) -> Path:
        """A screenshot of what is seen."""
        self.driver.set_window_size(width, height)
        self.driver.save_screenshot(str(file))
        return file


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A Chromium with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    running.set_page_load_timeout(60)
    yield Browser(running)
    running.quit()
