"""Recommendations in words and as snippets to copy, the same in `perflab advise realtime`, its Markdown and the
report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflab.middleware import thread_settings
from perflab.middleware.kind import ThreadsWanted
from perflab.report.table import STYLES, print_rows
from perflab.report.tables import plain
from perflab.report.tables.advice import VERDICTS, table
from perflab.results.advice import DEADLINE, EXECUTOR, MIDDLEWARE, Advice, Proof, RoleScheduled, Situation

if TYPE_CHECKING:
    from rich.console import Console

AGAIN = "The best of several looks better than it is: run `perflab advise realtime {run} --try` to test it again."


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """Text to copy; `language` is that of a Markdown fence."""

    title: str
    language: str
    text: str
    notes: tuple[str, ...] = ()


def snippets(situation: Situation) -> list[Snippet]:
    """How to apply the recommended assignment: in perflab, in the middleware's own file, and in a program."""
    chosen = situation.chosen
    if chosen is None:
        return []
    line = " ".join(f"--thread {shlex.quote(word)}" for word in chosen.threads)
    return [
        Snippet(title="perflab", language="sh", text=line),
        *_of_middleware(situation),
        *_of_programs(situation),
    ]


def sentences(situation: Situation) -> list[str]:
    """The recommendation and its reason, the boundary, and possible doubts."""
    return [situation.words, *situation.borders, *_doubts(situation)]


def _doubts(situation: Situation) -> Iterator[str]:
    without = [one.without for one in situation.tried if one.without is not None]
    if failed := sum(one.failed for one in without):
        of = sum(one.judged for one in without)
        yield (
            f"Without {situation.treatment}, {failed} of {of} trials failed, too: it is not the only cause; other "
            "programs or the middleware itself may be another."
        )


def draw(out: Console, advice: Advice, proofs: Sequence[Proof] = ()) -> None:
    """In a terminal. Text to copy is never broken into lines."""
    from rich.text import Text

    for situation in advice.situations:
        made = table(situation)
        out.print(Text(made.title, "bold"))
        print_rows(out, made)
        out.print()
        for sentence in sentences(situation):
            out.print(Text(sentence, "" if situation.advised is not None else "yellow"))
        for snippet in snippets(situation):
            out.print()
            out.print(Text(snippet.title, "bold"))
            for line in snippet.text.splitlines():
                out.print(Text(f"  {line}".rstrip()), soft_wrap=True)
            for note in snippet.notes:
                out.print(Text(note, "dim"))
        out.print()
    for proof in proofs:
        out.print(Text(f"Run again: {proof.words}. {proof.run}", STYLES[VERDICTS[proof.verdict][1]]))
    for note in notes(advice, proofs):
        out.print(Text(note, "dim"))


def markdown(advice: Advice, proofs: Sequence[Proof] = ()) -> str:
    lines = []
    for situation in advice.situations:
        made = table(situation)
        lines += [f"### {made.title}", "", plain.markdown_table(made), ""]
        lines += [text for sentence in sentences(situation) for text in (sentence, "")]
        for snippet in snippets(situation):
            lines += [f"**{snippet.title}**", "", f"```{snippet.language}", snippet.text, "```", ""]
            lines += [text for note in snippet.notes for text in (note, "")]
    lines += [text for proof in proofs for text in (f"Run again: {proof.words}.", "")]
    lines += [text for note in notes(advice, proofs) for text in (note, "")]
    return "\n".join(lines)


def notes(advice: Advice, proofs: Sequence[Proof] = ()) -> list[str]:
    """The rule that was applied, and its limits."""
    again = any(situation.advised is not None for situation in advice.situations) and not proofs
    return [advice.rule, *([AGAIN.format(run=advice.run)] if again else [])]


def _of_middleware(situation: Situation) -> Iterator[Snippet]:
    """A file for each setting of the middleware's threads in some processes. Without a real-time policy, nothing needs
    to be set."""
    chosen = situation.chosen
    levels: dict[tuple[str, int, tuple[int, ...]], list[RoleScheduled]] = {}
    for one in chosen.scheduled if chosen is not None else ():
        if one.role == MIDDLEWARE and one.rank and one.policy != DEADLINE:
            levels.setdefault((one.policy, one.priority, one.cpus), []).append(one)
    for (policy, priority, cpus), found in levels.items():
        names = tuple(dict.fromkeys(name for one in found for name in one.names))
        wanted = ThreadsWanted(policy, priority, cpus, names, situation.version)
        of = f", for {', '.join(one.process for one in found)}" if len(levels) > 1 else ""
        for settings in thread_settings(situation.middleware, wanted):
            yield Snippet(title=f"{settings.title}{of}", language="xml", text=settings.text, notes=settings.notes)


def _of_programs(situation: Situation) -> Iterator[Snippet]:
    chosen = situation.chosen
    by_process: dict[str, dict[str, RoleScheduled]] = {}
    for one in chosen.scheduled if chosen is not None else ():
        by_process.setdefault(one.process, {})[one.role] = one
    programs: dict[str, list[str]] = {}
    for process, roles in by_process.items():
        if EXECUTOR in roles and MIDDLEWARE in roles:
            text = program(roles[EXECUTOR], roles[MIDDLEWARE])
            if text is not None:
                programs.setdefault(text, []).append(process)
    for text, processes in programs.items():
        of = f", for {', '.join(processes)}" if len(programs) > 1 else ""
        yield Snippet(
            title=f"A node of ROS 2{of}",
            language="cpp",
            text=text,
            notes=(
                "Threads inherit policy, priority and CPUs from the thread that starts them: settings before "
                "rclcpp::init apply to the middleware's threads, on every middleware; settings after the node was "
                "created apply to the executor.",
            ),
        )


def program(executor: RoleScheduled, middleware: RoleScheduled) -> str | None:
    """The main function of a node in C++. None if sched_setscheduler(2) cannot set the policy."""
    if DEADLINE in (executor.policy, middleware.policy):
        return None
    cpus = sorted({*executor.cpus} & {*middleware.cpus}) if executor.cpus == middleware.cpus else []
    pin = [
        "  cpu_set_t cpus;",
        "  CPU_ZERO(&cpus);",
        *(f"  CPU_SET({cpu}, &cpus);" for cpu in cpus),
        "  check(sched_setaffinity(0, sizeof cpus, &cpus));",
    ]
    return "\n".join(
        [
            "#include <sched.h>",
            "",
            "#include <cerrno>",
            "#include <memory>",
            "#include <system_error>",
            "",
            "#include <rclcpp/rclcpp.hpp>",
            "",
            "void check(int result) {",
            '  if (result != 0) throw std::system_error(errno, std::generic_category(), "scheduling");',
            "}",
            "",
            "// Applies to the calling thread, and to those that it starts from now on.",
            "void schedule(int policy, int priority) {",
            "  sched_param level{};",
            "  level.sched_priority = priority;",
            "  check(sched_setscheduler(0, policy, &level));",
            "}",
            "",
            "int main(int argc, char** argv) {",
            *(pin if cpus else []),
            f"  schedule({_call(middleware)});  // threads of the middleware",
            "  rclcpp::init(argc, argv);",
            '  const auto node = std::make_shared<rclcpp::Node>("node");',
            f"  schedule({_call(executor)});  // the executor",
            "  rclcpp::spin(node);",
            "  rclcpp::shutdown();",
            "}",
        ]
    )


def _call(level: RoleScheduled) -> str:
    return f"SCHED_{level.policy}, {level.priority}"
