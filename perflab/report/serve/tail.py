"""What a file of lines has got since it was last looked at: nothing is read twice, and a half-written line waits."""

from __future__ import annotations

import os
from pathlib import Path

CHUNK_BYTES = 8 << 20  # at a time; what is more comes with the next look
LONGEST_LINE_BYTES = 64 << 20


class Tail:
    """Follows one file that somebody else appends to. The file may not exist yet, and may be replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False  # the last look found another file under the name, or one that had become shorter
        self._offset = 0
        self._rest = b""
        self._identity: tuple[int, int] | None = None

    def lines(self) -> list[bytes]:
        """The whole lines that are new, without their ends; none where the file cannot be read."""
        self.restarted = False
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return []
        try:
            status = os.fstat(descriptor)
            identity = (status.st_dev, status.st_ino)
            if self._identity is not None and (identity != self._identity or status.st_size < self._offset):
                self._offset, self._rest, self.restarted = 0, b"", True
            self._identity = identity
            if status.st_size == self._offset:
                return []
            new = os.pread(descriptor, CHUNK_BYTES, self._offset)
        except OSError:
            return []
        finally:
            os.close(descriptor)
        self._offset += len(new)
        whole, end, rest = new.rpartition(b"\n")
        if not end:
            self._rest += rest
            if len(self._rest) > LONGEST_LINE_BYTES:
                self._rest = b""  # no line of anybody's records; what follows it is damaged, and told
            return []
        lines = (self._rest + whole).split(b"\n")
        self._rest = rest
        return lines
