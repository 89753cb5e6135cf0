"""Encoded messages are those of the PyPI package rosbags, an independent reader and writer of ROS 2's CDR.

Every message that perflab brings, also those that services and actions are made of, in both byte orders:
- what rosbags writes, perflab decodes, and encodes again to the same bytes
- what perflab fills and encodes, rosbags decodes, and encodes again to the same bytes
- the type hashes are the same

rosbags knows no wstring, so the types with one are left out; tests/native/message covers them. It hashes `char` as the
char of IDL (type id 13), where ROS 2 makes it a uint8 (type id 3): hashes of types with one are left out.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from tests.marks import long_but

SOURCE = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "codec_tool"
OWN, OWN_HEADER = "perflab_msgs/", "perflab_msgs/Header"
PARTS = {"srv": ("Request", "Response"), "action": ("Goal", "Result", "Feedback")}
WRITTEN, FILLED = 6, 3  # messages of each type, in each byte order
LARGE_BYTES, LARGE_TIMES = 100_000, 1
NOTHING = ("structure_needs_at_least_one_member", (Nodetype.BASE, ("uint8", 0)))
WORDS = ("", "a", "robot", "Größe", "x" * 31, "日本語", "\U0001f916")


def interfaces() -> Iterator[Path]:
    for folder in (SOURCE / "ros/perflab_msgs", *sorted((SOURCE / "catalog/messages").iterdir())):
        yield from sorted(path for kind in ("msg", "srv", "action") for path in (folder / kind).glob(f"*.{kind}"))


def definitions() -> dict[str, str]:
    """The text of each struct by its full name."""
    texts: dict[str, str] = {}
    for path in interfaces():
        name = f"{path.parents[1].name}/{path.parent.name}/{path.stem}"
        if path.parent.name == "msg":
            texts[name] = path.read_text()
            continue
        parts = re.split(r"^---[ \t]*$\n?", path.read_text(), flags=re.MULTILINE)
        texts |= {f"{name}_{part}": text for part, text in zip(PARTS[path.parent.name], parts, strict=True)}
    return texts


def with_field(texts: dict[str, str], primitive: str) -> set[str]:
    """The types that have a field of that type, also within structs of theirs."""
    have = {name for name, text in texts.items() if re.search(rf"^\s*{primitive}\b", text, re.MULTILINE)}
    while True:
        names = {re.escape(name.rpartition("/")[2]) for name in have}
        within = re.compile(rf"^\s*([a-z_0-9]+/)?({'|'.join(sorted(names))})\b", re.MULTILINE) if names else None
        more = {name for name, text in texts.items() if within and within.search(text)} - have
        if not more:
            return have
        have |= more


TEXTS = definitions()
TYPES = sorted(TEXTS.keys() - with_field(TEXTS, "wstring"))
HASHED = sorted(set(TYPES) - with_field(TEXTS, "char"))
PACKAGES = sorted({name.partition("/")[0] for name in TYPES})
QUICK = ["sensor_msgs", "std_msgs"]


@pytest.fixture(scope="module")
def store() -> Typestore:
    made = get_typestore(Stores.EMPTY)
    for name in TYPES:
        # rosbags reads messages alone, and calls what it reads one, whatever it was called: "pkg/msg/SetBool_Request".
        # And "Header" is that of std_msgs to it, also where the package has its own.
        # A message of the package that a service names without it is one of "pkg/srv" to it.
        text = (
            re.sub(r"^Header\b", OWN_HEADER, TEXTS[name], flags=re.MULTILINE) if name.startswith(OWN) else TEXTS[name]
        )
        if "/msg/" not in name:
            text = re.sub(r"^([A-Z]\w*)(?=[\[ \t<])", rf"{name.partition('/')[0]}/\1", text, flags=re.MULTILINE)
        (read,) = get_types_from_msg(text, name).values()
        made.register({name: read})
    return made


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., str]]:
    if not os.access(TOOL, os.X_OK):
        pytest.skip("no codec_tool in PERFLAB_TEST_TOOLS; build it with `make test`")
    with subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
        questions, answers = tool.stdin, tool.stdout
        assert questions is not None
        assert answers is not None

        def answer(*words: object) -> str:
            print(*words, file=questions, flush=True)
            return answers.readline().strip()

        yield answer
        questions.close()
        assert tool.wait() == 0


class Writer:
    """Makes messages of random content."""

    def __init__(self, store: Typestore, seed: str) -> None:
        self._store, self._rng = store, random.Random(seed)

    def message(self, name: str, depth: int = 0) -> Any:
        fields = self._store.fielddefs[name][1] or [
            ("structure_needs_at_least_one_member", (Nodetype.BASE, ("uint8", 0)))
        ]
        kind = self._store.types[name]
        return kind(*(self._value(description, depth) for _, description in fields))

    def _value(self, description: Any, depth: int) -> Any:
        kind, about = description
        if kind == Nodetype.NAME:
            return self.message(about, depth + 1)
        if kind == Nodetype.BASE:
            return self._text(about[1]) if about[0] == "string" else self._numbers(about[0], 1)[0].item()
        element, bound = about
        count = bound if kind == Nodetype.ARRAY else self._length(element, bound, depth)
        if element[0] == Nodetype.BASE and element[1][0] != "string":
            return self._numbers(element[1][0], count)
        return [self._value(element, depth) for _ in range(count)]

    def _length(self, element: Any, bound: int, depth: int) -> int:
        most = max(1, 4 - depth) if element[0] == Nodetype.NAME else self._rng.choice((0, 1, 5, 300))
        return self._rng.randint(0, min(most, bound) if bound else most)

    def _text(self, bound: int) -> str:
        text = "".join(self._rng.choices(WORDS, k=self._rng.randint(0, 4)))
        return text.encode()[:bound].decode(errors="ignore") if bound else text

    def _numbers(self, primitive: str, count: int) -> Any:
        if primitive == "bool":
            return np.array([self._rng.random() < 0.5 for _ in range(count)], np.bool_)
        # A single `byte` is signed to rosbags, an array of them is not.
        known = {"byte": np.int8 if count == 1 else np.uint8, "char": np.uint8}.get(primitive, primitive)
        kind: Any = np.dtype(known)
        numbers = np.frombuffer(self._rng.randbytes(count * kind.itemsize), kind)
        # Python's floats keep not every bit of what is no number.
        return np.where(np.isnan(numbers), kind.type(-0.0), numbers) if kind.kind == "f" else numbers


def compare(name: str, number: int, answer: str, expected: str) -> None:
    """Says where they differ: messages have megabytes."""
    if answer != expected:
        differ = (i for i, (ours, theirs) in enumerate(zip(answer, expected, strict=False)) if ours != theirs)
        at = next(differ, min(len(answer), len(expected))) // 2
        around = slice(2 * max(0, at - 8), 2 * at + 16)
        pytest.fail(f"{name}, message {number}, octet {at}: {answer[around]} and not {expected[around]}")


def times(message: memoryview | str, usual: int) -> int:
    return LARGE_TIMES if len(message) > LARGE_BYTES else usual


def types_of(package: str) -> list[str]:
    return [name for name in TYPES if name.startswith(f"{package}/")]


def test_there_are_thousands_of_cases() -> None:
    assert len(TYPES) * 2 * (WRITTEN + FILLED) > 5000


@pytest.mark.parametrize("package", long_but(QUICK, PACKAGES))
def test_what_rosbags_writes_is_decoded_and_encoded_again(
    ask: Callable[..., str], store: Typestore, package: str
) -> None:
    for name in types_of(package):
        writer = Writer(store, name)
        for number in itertools.count():
            message = writer.message(name)
            little, big = (store.serialize_cdr(message, name, little_endian=order) for order in (True, False))
            for written in (little, big):
                compare(name, number, ask("decode", name, written.hex()), little.hex())
            if number + 1 >= times(little, WRITTEN):
                break


@pytest.mark.parametrize("package", long_but(QUICK, PACKAGES))
def test_what_perflab_encodes_is_decoded_and_written_again(
    ask: Callable[..., str], store: Typestore, package: str
) -> None:
    rng = random.Random(package)
    for name in types_of(package):
        for number in itertools.count():
            filled = ask("fill", name, rng.choice((1, 2, 7, 100, 1000)), rng.getrandbits(64))
            message = store.deserialize_cdr(bytes.fromhex(filled), name)
            compare(name, number, store.serialize_cdr(message, name, little_endian=True).hex(), filled)
            big = store.serialize_cdr(message, name, little_endian=False)
            compare(name, number, ask("decode", name, big.hex()), filled)
            if number + 1 >= times(filled, FILLED):
                break


@pytest.mark.parametrize("package", PACKAGES)
def test_type_hashes_are_those_of_rosbags(ask: Callable[..., str], store: Typestore, package: str) -> None:
    names = [name for name in types_of(package) if name in HASHED]
    assert {name: ask("hash", name) for name in names} == {name: store.hash_rihs01(name) for name in names}
