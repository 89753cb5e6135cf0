"""The flame graph page: what is in it, and what it does in a browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from perflab.profile import flamegraph
from perflab.profile.flamegraph import Frame, page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_TIMEOUT_S = 120

FAMILIES = {"application": "application", "dds": "DDS", "kernel": "the kernel", "unknown": "unknown"}
MAIN, SEND, WRITE = (
    Frame("main", "application"),
    Frame("ns::send<A<B>, C>", "application", "/opt/x"),
    Frame("write", "dds"),
)
SYSTEM = Frame("sendmsg", "kernel", "kernel")
STACKS: list[tuple[Sequence[Frame | str], int]] = [
    (("one (1)", MAIN, SEND, WRITE), 40),
    (("one (1)", MAIN, SEND, WRITE, SYSTEM), 30),
    (("one (1)", MAIN, Frame("compute", "application")), 20),
    (("two (2)", MAIN, WRITE), 10),
]


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def test_the_tree_is_each_node_before_those_below_it_the_heavier_first() -> None:
    data = Parsed(page("t", STACKS, unit="ns", families=FAMILIES)).data
    names = ["all" if number < 0 else data["names"][number] for number in data["nodes"]]
    assert list(zip(names, data["depths"], data["own"], strict=True)) == [
        ("all", 0, 0),
        ("one (1)", 1, 0), ("main", 2, 0), ("ns::send<A<B>, C>", 3, 0), ("write", 4, 40), ("sendmsg", 5, 30),
        ("compute", 3, 20),
        ("two (2)", 1, 0), ("main", 2, 0), ("write", 3, 10),
    ]  # fmt: skip
    of = {name: data["families"][family] for name, family in zip(data["names"], data["family"], strict=True)}
    assert (of["one (1)"], of["write"], of["sendmsg"]) == ("", "DDS", "the kernel")


def test_a_page_loads_nothing_and_whatever_a_function_is_called_stays_text() -> None:
    evil = "</script><script>alert(1)</script><!-- {{data}} & \u2028"
    text = page(evil, [((evil, evil), 1)], unit="samples", families={"x": evil}, facts=[evil])
    parsed = Parsed(text)
    assert parsed.loads == [] and len(parsed.scripts) == 2
    assert parsed.data["names"] == [evil]
    assert "default-src 'none'" in text
    assert "<script>alert" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_deep_stacks_and_none() -> None:
    deep = [f"f{number}" for number in range(5000)]
    assert max(Parsed(page("t", [(deep, 3)], unit="ns")).data["depths"]) == 5000
    assert Parsed(page("t", [], unit="ns")).data["nodes"] == [-1]
    with pytest.raises(ValueError, match="must not be negative"):
        page("t", [(("a",), -1)], unit="ns")


def test_folded_stacks_are_read() -> None:
    assert list(flamegraph.folded(["a;b c;d 12\n", "a 3", "\n"])) == [(["a", "b c", "d"], 12), (["a"], 3)]
    with pytest.raises(ValueError, match="x"):
        list(flamegraph.folded(["a;b x"]))


def test_each_family_has_a_pair_of_colour_and_pattern_of_its_own() -> None:
    families = {f"f{number}": f"f{number}" for number in range(40)}
    text = page("t", STACKS, unit="ns", families=families)
    patterns = dict(re.findall(r'<pattern id="p(\d+)".*?<path d="([^"]*)"', text))
    grounds = dict(re.findall(r"--b(\d+): light-dark\((hsl\([^)]*\)),", text))
    pairs = {(patterns[number], grounds[number]) for number in patterns}
    assert len(pairs) == len(families)


def luminance(hue: float, saturation: float, lightness: float) -> float:
    def channel(n: int) -> float:
        k = (n + hue / 30) % 12
        value = lightness - saturation * min(lightness, 1 - lightness) * max(-1.0, min(k - 3, 9 - k, 1.0))
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4)


def test_names_are_readable_on_every_colour_in_both_schemes() -> None:
    families = {name: name for name in (*(f"f{number}" for number in range(8)), "unknown")}
    text = page("t", STACKS, unit="ns", families=families)
    one = r"hsl\((\d+) (\d+)% (\d+)%\)"
    found = re.findall(rf"--[bl]\d+: light-dark\({one}, {one}\);", text)
    light, dark = [tones[:3] for tones in found], [tones[3:] for tones in found]
    assert len(light) == len(dark) == 2 * len(families)
    for colors, ink in ((light, 0x1C1F24), (dark, 0xECEEF2)):
        bright = [((ink >> shift) & 255) / 255 for shift in (16, 8, 0)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in bright]
        of_ink = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        for hue, saturation, lightness in colors:
            ground = luminance(float(hue), float(saturation) / 100, float(lightness) / 100)
            contrast = (max(ground, of_ink) + 0.05) / (min(ground, of_ink) + 0.05)
            assert contrast >= 4.5, (hue, saturation, lightness)


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser ({', '.join(BROWSERS)})")
    return found


def browse(browser: str, text: str, folder: Path, script: str, size: str = "1200,900") -> dict[str, Any]:
    """What `script` returns in the page, once it is drawn. The console must have nothing to complain about."""
    asked = f"<script>document.documentElement.dataset.answer = JSON.stringify((() => {{{script}}})());</script>"
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{asked}</body>"))
    done = subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--enable-logging=stderr", "--virtual-time-budget=20000", f"--user-data-dir={folder / 'browser'}",
            f"--window-size={size}", "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=BROWSER_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    match = re.search(r'data-answer="([^"]*)"', done.stdout)
    assert match is not None, done.stdout[:500]
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    return found


HELP = """
  const boxes = () => [...document.querySelectorAll("#frames g")].map((g) => ({
    name: g.getAttribute("aria-label").replace(/, [^,]*$/, ""),
    level: Number(g.getAttribute("aria-level")),
    share: Math.round(100 * g.querySelector("rect").width.baseVal.value / document.getElementById("graph").clientWidth),
    y: g.querySelector("rect").y.baseVal.value, states: g.getAttribute("class").trim(), element: g,
  }));
  const plain = () => boxes().map((b) => [b.name, b.level, b.share]);
  const box = (name) => boxes().find((b) => b.name === name).element;
  const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const by = (id) => document.getElementById(id);
  const press = (key) => by("graph").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const told = () => document.getElementById("told").textContent;
  const at = () => document.querySelector("#frames .at")?.getAttribute("aria-label");
"""


def test_it_draws_zooms_and_tells(browser: str, tmp_path: Path) -> None:
    text = page("t", STACKS, unit="ns", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const all = plain();
      click(box("ns::send<A<B>, C>").querySelector("rect"));
      const zoomed = plain(), said = told(), dimmed = boxes().filter((b) => b.states === "above").map((b) => b.name);
      const label = box("ns::send<A<B>, C>").querySelector("text").textContent;
      for (let k = 0; k < 3; k++) click(by("out"));
      return { all, zoomed, said, dimmed, label, again: plain(), out: document.getElementById("out").disabled };
    """)  # fmt: skip
    assert found["all"] == [
        ["all", 1, 100], ["one (1)", 2, 90], ["main", 3, 90], ["ns::send<A<B>, C>", 4, 70], ["write", 5, 70],
        ["sendmsg", 6, 30], ["compute", 4, 20], ["two (2)", 2, 10], ["main", 3, 10], ["write", 4, 10],
    ]  # fmt: skip
    assert found["zoomed"] == [["all", 1, 100], ["one (1)", 2, 100], ["main", 3, 100], ["ns::send<A<B>, C>", 4, 100],
                               ["write", 5, 100], ["sendmsg", 6, 43]]  # fmt: skip
    assert found["dimmed"] == ["all", "one (1)", "main"]
    assert "ns::send<A<B>, C>70 ns, 70.0 %, 100.0 % of what is shown" in found["said"]
    assert "application · /opt/x" in found["said"]
    assert found["again"] == found["all"] and found["out"] is True


def test_it_searches_and_tells_the_share(browser: str, tmp_path: Path) -> None:
    text = page("t", STACKS, unit="ns", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const answers = {}, search = document.getElementById("search"), real = window.setTimeout;
      window.setTimeout = (f) => f();
      for (const word of ["WRITE", "/^(write|sendmsg)$/", "nothing", "/(/", "main", ""]) {
        search.value = word;
        search.dispatchEvent(new Event("input"));
        answers[word] = [by("found").textContent, boxes().filter((b) => b.states.includes("hit")).length];
      }
      return answers;
    """)  # fmt: skip
    assert found == {
        "WRITE": ["80.0 % in 1 name", 2], "/^(write|sendmsg)$/": ["80.0 % in 2 names", 3],
        "nothing": ["0.00 % in 0 names", 0], "/(/": ["no regular expression", 0], "main": ["100.0 % in 1 name", 2],
        "": ["", 0],
    }  # fmt: skip


def test_it_turns_merges_and_shows_callers(browser: str, tmp_path: Path) -> None:
    text = page("t", STACKS, unit="ns", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const down = boxes().map((b) => b.y);
      click(by("turn"));
      const up = boxes().map((b) => b.y), pressed = by("turn").getAttribute("aria-pressed");
      click(by("merge"));
      const merged = plain();
      click(by("callers"));
      const callers = plain();
      click(by("merge"));
      return { down, up, pressed, merged, callers, perThread: plain() };
    """)  # fmt: skip
    assert found["pressed"] == "true"
    top = max(found["down"])
    assert found["up"] == [top - y for y in found["down"]]
    assert found["merged"] == [["all", 1, 100], ["main", 2, 100], ["ns::send<A<B>, C>", 3, 70], ["write", 4, 70],
                               ["sendmsg", 5, 30], ["compute", 3, 20], ["write", 3, 10]]  # fmt: skip
    assert found["callers"] == [
        ["all", 1, 100],
        ["write", 2, 50], ["ns::send<A<B>, C>", 3, 40], ["main", 4, 40], ["main", 3, 10],
        ["sendmsg", 2, 30], ["write", 3, 30], ["ns::send<A<B>, C>", 4, 30], ["main", 5, 30],
        ["compute", 2, 20], ["main", 3, 20],
    ]  # fmt: skip
    assert [b for b in found["perThread"] if b[1] == 2] == [["one (1)", 2, 90], ["two (2)", 2, 10]]


def test_it_is_used_with_the_keyboard(browser: str, tmp_path: Path) -> None:
    text = page("t", STACKS, unit="ns", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const way = [at()];
      for (const key of ["ArrowDown", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"]) {
        press(key);
        way.push(at());
      }
      press("ArrowDown"); press("Enter");
      const zoomed = plain().length, active = document.getElementById("graph").getAttribute("aria-activedescendant");
      press("Escape"); press("Escape"); press("Escape"); press("Home");
      return { way, zoomed, active: document.getElementById(active) !== null, all: plain().length, home: at() };
    """)  # fmt: skip
    assert found["way"] == [
        "all, 100.0 %", "one (1), 90.0 %", "two (2), 10.0 %", "one (1), 90.0 %", "main, 90.0 %",
        "ns::send<A<B>, C>, 70.0 %", "compute, 20.0 %", "main, 90.0 %",
    ]  # fmt: skip
    assert (found["zoomed"], found["all"], found["home"], found["active"]) == (6, 10, "all, 100.0 %", True)


def test_a_family_can_be_picked_out(browser: str, tmp_path: Path) -> None:
    text = page("t", STACKS, unit="ns", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const legend = [...document.querySelectorAll("#legend button")];
      const words = legend.map((b) => b.textContent);
      click(legend[1]);
      return { words, bright: boxes().filter((b) => !b.states.includes("miss")).map((b) => b.name) };
    """)  # fmt: skip
    assert found["words"] == ["application 20.0 %", "DDS 50.0 %", "the kernel 30.0 %"]
    assert found["bright"] == ["write", "write"]


def test_fifty_thousand_stacks_at_the_width_of_a_telephone(browser: str, tmp_path: Path) -> None:
    def many() -> list[tuple[Sequence[Frame | str], int]]:
        made: list[tuple[Sequence[Frame | str], int]] = []
        for number in range(50_000):
            way = [Frame(f"f{depth}_{number // 5 ** (8 - depth)}", "application") for depth in range(9)]
            made.append((("one (1)", *way), 1 + number % 7))
        return made

    text = page("t", many(), unit="samples", families=FAMILIES)
    found = browse(browser, text, tmp_path, HELP + """
      const rows = boxes();
      return { drawn: rows.length, wide: document.documentElement.scrollWidth <= document.documentElement.clientWidth,
               deepest: Math.max(...rows.map((b) => b.level)), told: told() };
    """, "500,900")  # fmt: skip
    assert found["wide"] is True
    assert 100 < found["drawn"] < 10_000, "what is too narrow to be seen is left out"
    total = sum(1 + number % 7 for number in range(50_000))
    assert found["told"] == f"all{total} samples, 100.0 %"
