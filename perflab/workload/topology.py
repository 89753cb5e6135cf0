"""The `topology` workload: graph files, or catalog names, resolved by perflab-graph.

One file is one graph; several files become the processes of one graph. perflab-graph does all validation, and the user
sees its error line.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab import catalog, programs
from perflab.errors import BadInput, PerflabError, Unavailable, instead, one_line
from perflab.native import Native
from perflab.workload import Graph, Made, Source

RESOLVE_TIMEOUT_S = 60.0
MAX_FILE_BYTES = 16 << 20  # as perflab-graph's


def find(word: str) -> Path:
    """The file that a word of the command line names: a catalog name or a path. Raises BadInput."""
    entries = {entry.name: entry.path for entry in catalog.topologies()}
    looks_like_a_path = "/" in word or word.endswith(catalog.TOPOLOGY_SUFFIXES)
    if not looks_like_a_path and word in entries:
        return entries[word]
    path = Path(word)
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read workload {_shortened(word)!r}: {reason}") from error
    if kind is not None and stat.S_ISREG(kind):
        return path
    if kind is not None:
        what = "a directory" if stat.S_ISDIR(kind) else "not a regular file"
        raise BadInput(f"workload {word!r} is {what}; name a graph file (YAML or JSON)")
    if looks_like_a_path:
        raise BadInput(f"workload file {word!r} does not exist")
    experiments = [entry.name for entry in catalog.experiments()]
    hint = instead(word, [*entries, *experiments], "`perflab list topologies` shows the names", most=3)
    raise BadInput(f"no workload named {_shortened(word)!r}; {hint}")


def load(words: Sequence[str], native: Native, message_path: Sequence[str] = ()) -> Made:
    """Resolves catalog names and paths into one graph, with the message types that perflab brings and those of the
    folders. Raises BadInput and Unavailable."""
    paths = [find(word) for word in words]
    sources = tuple(_source(path) for path in paths)
    graph = Graph(_ask(native.program("perflab-graph"), "resolve", paths, message_path))
    several = "+".join(dict.fromkeys(p.stem for p in paths)) if len(paths) > 1 else None
    return Made(graph, called=several, sources=sources)


def resolved(document: Mapping[str, Any], native: Native, message_path: Sequence[str] = ()) -> Graph:
    """A generated graph in the form of a graph file; error messages leave out lines and columns, which mean nothing to
    the user. Raises BadInput and Unavailable."""
    where = f"workload {document['name']}"
    asked = ["resolve", "--name", where, *_folders(message_path), "--", "-"]
    try:
        return Graph(_known(_run(native.program("perflab-graph"), asked, told=json.dumps(document))))
    except BadInput as error:
        raise BadInput(re.sub(rf"^{re.escape(where)}:\d+:\d+:", f"{where}:", str(error))) from error


def _source(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"cannot read workload {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadInput(f"workload {path} exceeds the limit of {MAX_FILE_BYTES >> 20} MiB for a graph file")
    return Source(str(path), hashlib.sha256(content).hexdigest(), content.decode("utf-8", errors="replace"))


def _shortened(word: str) -> str:
    return word if len(word) <= 80 else f"{word[:77]}..."


def describe(paths: Sequence[Path], native: Native) -> list[dict[str, Any] | None]:
    """Counts and rates of each graph file ({"nodes", "publishers", "delivered_per_s", ...}); None for a file that is
    not a graph. Raises Unavailable and PerflabError."""
    if not paths:
        return []
    found = _run(native.program("perflab-graph"), ["describe", "--each", "--", *map(str, paths)])
    if not isinstance(found, list) or len(found) != len(paths):
        raise PerflabError("perflab-graph printed no list of graphs; build it again with `make`")
    return [None if about is None else _known(about) for about in found]


def message_types(
    native: Native, message_path: Sequence[str] = (), wrong: list[str] | None = None
) -> list[dict[str, Any]]:
    """The message types: {"name", "ros_type", "family", "payload_bytes", "variable", "plain", "struct_bytes", "keys",
    "stamp"}.

    `payload_bytes` is None if the publisher chooses it; `stamp` is what a message carries for its measurement:
    "header", "time and id", or None for nothing. `wrong` gets a line for each invalid interface file; without it such a
    file raises BadInput. Raises BadInput and Unavailable.
    """
    types = _run(native.program("perflab-graph"), ["types", *_folders(message_path)], wrong=wrong)
    if not isinstance(types, list):
        raise PerflabError("perflab-graph printed no list of types; build it again with `make`")
    return types


def _ask(program: Path, question: str, paths: Sequence[Path], message_path: Sequence[str] = ()) -> dict[str, Any]:
    return _known(_run(program, [question, *_folders(message_path), "--", *map(str, paths)]))


def _folders(message_path: Sequence[str]) -> list[str]:
    return [word for folder in message_path for word in ("--message-path", folder)]


def _known(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise PerflabError("perflab-graph printed a graph of another version; build it again with `make`")
    return document


def _run(program: Path, arguments: Sequence[str], *, told: str | None = None, wrong: list[str] | None = None) -> Any:
    """The output of perflab-graph, with `told` as input. Bad input raises, unless `wrong` takes the lines about it."""
    try:
        done = programs.ask([program, *arguments], limit_s=RESOLVE_TIMEOUT_S, told=told)
    except subprocess.TimeoutExpired as error:
        raise PerflabError(f"perflab-graph did not finish within {RESOLVE_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise Unavailable(f"cannot start {program}: {error.strerror}; build it again with `make`") from error
    complaint = one_line(done.stderr)
    if done.returncode == BadInput.exit_code and done.stdout and wrong is not None:
        wrong += done.stderr.splitlines()
    elif done.returncode == BadInput.exit_code:
        raise BadInput(complaint or "not a valid graph")
    if done.returncode == Unavailable.exit_code:
        raise Unavailable(complaint)
    if done.returncode not in (0, BadInput.exit_code):
        raise PerflabError(f"perflab-graph ended with {done.returncode}: {complaint}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise PerflabError(f"perflab-graph printed no JSON: {error}") from error
