"""What `make docs` does beside MkDocs: it makes the reference, shows the sources that pages refer to, fills the nav.

Pages in docs/ are written for the repository: links out of docs/ lead to its files. On the site such a file is a page
below source/, and a folder a list of its files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reference

SOURCE = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
BY_ITS_FILE = re.compile(r"\[([\w/-]+\.md)\]\(([^)\s#]+\.md)\)")
TITLE = re.compile(r"^# ([^:,\n]+)", re.MULTILINE)  # as far as it names the page
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    **{"h": "cpp", "cpp": "cpp", "c": "c", "py": "python", "rs": "rust"},
    **{"cmake": "cmake", "yaml": "yaml", "json": "json"},
}
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    titles = {}
    for page in reference.pages():
        files.append(File.generated(config, page.path, content=page.text))
        titles[page.path] = page.title
    for path in sorted(_sources(files)):
        for made in _shown(path, config):
            if files.get_file_from_path(made.src_uri) is None:
                files.append(made)
    config.nav = _filled(config.nav, [file.src_uri for file in files.documentation_pages()], titles)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to sources lead to the pages that show them, and pages are called by their titles instead of their files. A
    page that stands alone has no list of its like beside it."""
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    own = PurePosixPath("docs", page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        outside = _outside(own, found[2])
        if outside is None:
            return found[0]
        return f"{found[1]}{relpath(_uri(outside), str(PurePosixPath(page.file.src_uri).parent))}{found[4]}"

    def titled(found: re.Match[str]) -> str:
        target = files.get_file_from_path(normpath(str(PurePosixPath(page.file.src_uri).parent / found[2])))
        title = TITLE.search(target.content_string) if target is not None else None
        return found[0] if title is None else f"[{title[1]}]({found[2]})"

    return _outside_of_fences(markdown, lambda text: LINK.sub(link, BY_ITS_FILE.sub(titled, text)))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """`a\\|b` in a table is `a|b`, as on GitHub: Python-Markdown keeps the backslash in code."""
    return CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


@event_priority(-100)  # after the search has written its index
def on_post_build(config: MkDocsConfig) -> None:
    """The index of the search as a script, which a page of a file can load."""
    folder = Path(config.site_dir, "search")
    index = (folder / "search_index.json").read_text("utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


# -- sources ---------------------------------------------------------------------------------------------------------


def _sources(files: Files) -> set[str]:
    """What of the repository pages refer to, as paths from its root."""
    found = set()
    for file in files.documentation_pages():
        own = PurePosixPath("docs", file.src_uri)
        for target in LINK.finditer(FENCE.sub("", file.content_string)):
            if (outside := _outside(own, target[2])) is not None:
                found.add(outside)
    return found


def _outside(own: PurePosixPath, target: str) -> str | None:
    """Where a link out of docs/ leads; None for others, and for what there is not, of which MkDocs warns."""
    if "://" in target or target.startswith(("/", "mailto:")):
        return None
    path = normpath(str(own.parent / target))
    inside = path.startswith(("..", "docs/")) or path == "docs"
    return None if inside or not (SOURCE / path).exists() else path


def _uri(path: str) -> str:
    return f"source/{path}/index.md" if (SOURCE / path).is_dir() else f"source/{path}.md"


def _shown(path: str, config: MkDocsConfig) -> Iterator[File]:
    place = SOURCE / path
    if place.is_dir():
        entries = sorted(p for p in place.iterdir() if p.is_file())
        lines = [f"* [{entry.name}]({entry.name}.md)" for entry in entries]
        yield _generated(config, _uri(path), f"# {path}\n\n" + "\n".join(lines) + "\n")
        for entry in entries:
            yield from _shown(f"{path}/{entry.name}", config)
        return
    text = place.read_text("utf-8")
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=2))
    language = LANGUAGES.get(place.suffix.removeprefix("."), "text")
    yield _generated(config, _uri(path), f"# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n")


def _generated(config: MkDocsConfig, uri: str, text: str) -> File:
    """A page that the search leaves out: it finds documentation."""
    return File.generated(
        config, uri, content=f"---\nsearch: {{exclude: true}}\n---\n\n{text}", inclusion=InclusionLevel.NOT_IN_NAV
    )


def _outside_of_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


# -- navigation ------------------------------------------------------------------------------------------------------


def _filled(nav: Any, uris: list[str], titles: dict[str, str]) -> Any:
    """The navigation with the pages that its patterns stand for; a section without any page is left out."""
    named = set(_named(nav))

    def fill(entries: list[Any]) -> list[Any]:
        filled: list[Any] = []
        for entry in entries:
            if isinstance(entry, dict):
                ((title, inner),) = entry.items()
                inner = fill(inner) if isinstance(inner, list) else inner
                filled += [{title: inner}] if inner else []
            elif "*" in entry:
                found = [uri for uri in uris if fnmatch(uri, entry) and uri not in named and _beside(uri, entry)]
                filled += [{titles[uri]: uri} if uri in titles else uri for uri in sorted(found, key=_is_no_index)]
            else:
                filled.append(entry)
        return filled

    return fill(nav)


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, dict):
        nav = list(nav.values())
    for entry in [nav] if isinstance(nav, str) else nav:
        if isinstance(entry, str):
            yield entry
        else:
            yield from _named(entry)


def _beside(uri: str, pattern: str) -> bool:
    """A pattern is of one folder, not of those below it."""
    return PurePosixPath(uri).parent == PurePosixPath(pattern).parent


def _is_no_index(uri: str) -> bool:
    return PurePosixPath(uri).stem not in ("index", "README")
