"""What a reader of a report must find without scrolling: ten questions, and the text of what is seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from live_browser import Page

READY = "document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'"

QUESTIONS = (
    "What was tested?",
    "On which middleware?",
    "On what machine?",
    "Under which conditions?",
    "How many trials, and how long?",
    "Which is worse, and by how much?",
    "How sure is that?",
    "What was invalid?",
    "Can it be trusted, and why?",
    "Why were messages late?",
)

# Of every text that is seen, in the order of the page; none of what is outside, hidden, or behind a fold.
_SEEN = """(() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim() || !node.parentElement.checkVisibility({visibilityProperty: true})) continue;
    if (getComputedStyle(node.parentElement).clipPath !== "none") continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()];
    const inside = (b) => b.left >= 0 && b.top >= 0 && b.right <= innerWidth && b.bottom <= innerHeight;
    if (boxes.length > 0 && boxes.every(inside)) found.push(node.data);
  }
  return found.join(" ");
})()"""


def open_at(page: Page, path: Path, width: int, height: int = 900, *, dark: bool = False) -> None:
    page.open(path.as_uri(), width, height, dark=dark)
    page.wait_for(READY)


def seen(page: Page) -> str:
    """The text whose boxes lie within the window."""
    return re.sub(r"\s+", " ", str(page.ask(_SEEN)).replace("\u00a0", " "))


def unanswered(text: str, answers: Mapping[str, str]) -> list[str]:
    """The questions to which the text has not the expected answer, a regular expression."""
    assert tuple(answers) == QUESTIONS
    return [f"{question} {answer}" for question, answer in answers.items() if not re.search(answer, text)]
