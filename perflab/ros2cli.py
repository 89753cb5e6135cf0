"""`ros2 perflab ...` is `perflab ...`: a command of ros2cli that passes on every word.

It replaces the process: ros2 has loaded the client library of ROS 2, which must not be in a program that measures.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ros2cli.command import CommandExtension

from perflab import workspace
from perflab.errors import Unavailable
from perflab.output import visible_line


class PerflabCommand(CommandExtension):  # type: ignore[misc]
    """Measure the performance of ROS 2 and DDS: the command perflab."""

    def add_arguments(self, parser: argparse.ArgumentParser, cli_name: str, **_: object) -> None:
        """Takes the words after `ros2 perflab` unchanged, including options and --help."""

        ordinary = parser.parse_known_args

        def take_all(
            args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
        ) -> tuple[argparse.Namespace, list[str]]:
            known, _ = ordinary([], namespace)  # the defaults that ros2 gave this parser
            known.perflab_arguments = list(args or [])
            return known, []

        parser.parse_known_args = take_all  # type: ignore[assignment,method-assign]

    def main(self, *, parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
        """Returns only if perflab cannot be started; otherwise the exit code is perflab's own."""
        complaint = workspace.prepare()
        if complaint:
            sys.stderr.write(f"perflab: {visible_line(complaint)}\n")
            return Unavailable.exit_code
        sys.stdout.flush()
        # -P: a folder `perflab` in the current one, which every workspace has in src, is not the program.
        return os.execv(sys.executable, [sys.executable, "-P", "-m", "perflab", *args.perflab_arguments])
