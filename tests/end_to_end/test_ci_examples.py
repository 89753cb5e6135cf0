"""The jobs of continuous integration in examples/ci: their shell lines run as the services run them. Programs that
record their arguments replace those that install packages or post results."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from tests.said import finished

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ci"
RECORDS = """#!/bin/sh
echo "$(basename "$0") $*" >> {told}
for word in "$@"; do
  case $word in body@*) cp "${{word#body@}}" {posted} ;; comment.md) cp comment.md {posted} ;; esac
done
"""
MAKES_VENV = """#!/bin/sh
mkdir -p "$3/bin"
cp {bin}/perflab "$3/bin/perflab"
cp {bin}/apt-get "$3/bin/pip"
"""
PERFLAB = """#!/bin/sh
[ "$1" = doctor ] && echo libmiddleware1 && exit
exec {python} -m perflab "$@"
"""


class Job:
    """A checkout of a project that took the example over, with two commits, and a machine of the service."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.project = folder, folder / "project"
        self.told, self.posted, programs = folder / "told", folder / "posted.md", folder / "bin"
        programs.mkdir()
        for program in ("apt-get", "gh", "curl"):
            (programs / program).write_text(RECORDS.format(told=self.told, posted=self.posted))
        (programs / "python3").write_text(MAKES_VENV.format(bin=programs))
        (programs / "perflab").write_text(PERFLAB.format(python=shlex.quote(sys.executable)))
        for file in programs.iterdir():
            file.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(EXAMPLES.parents[1]),
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
            "GITHUB_PATH": str(folder / "path"),
            "PERFLAB_WHEEL": "perflab.whl",
            "PERFLAB_MIDDLEWARE": "virtual",
            "PERFLAB_TRIALS": "2",
            "PERFLAB_TIME": "200ms",
        }
        ours = self.project / "ci" / "perflab"
        ours.mkdir(parents=True)
        for example in ("measure", "system.yaml"):
            (ours / example).write_bytes((EXAMPLES / example).read_bytes())
        (ours / "measure").chmod(0o755)
        self.git("init", "--quiet")
        self.commit("the base")
        self.base = self.git("rev-parse", "HEAD").strip()
        self.document: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
        done = finished(["git", *who, *words], cwd=self.project, env=self.environment)
        assert done.returncode == 0, done
        return done.stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def run(self, lines: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", lines]
        return finished(shell, cwd=self.project, env=environment, stdin=subprocess.DEVNULL)

    def installed_perflab(self) -> None:
        told = self.told.read_text()
        assert "pip install perflab.whl" in told
        assert "apt-get install -y --no-install-recommends libmiddleware1" in told

    def verdicts(self) -> list[str]:
        suites = ElementTree.parse(self.project / "perflab.xml").getroot()
        return [str(case.get("name")) for case in suites.iter("testcase")]


def test_a_pull_request_on_github_gets_the_verdicts_as_a_comment(tmp_path: Path) -> None:
    job = Job(tmp_path, "github.yml")
    (job.project / "README").write_text("a change that makes nothing worse\n")
    job.commit("the change")
    of_job = job.document["jobs"]["perflab"]
    assert {"BASE", "PULL_REQUEST", "GH_TOKEN", "GH_REPO", "PERFLAB_WHEEL"} == of_job["env"].keys()
    for step in of_job["steps"]:
        if "run" in step:
            done = job.run(step["run"], BASE=job.base, PULL_REQUEST="7")
            assert done.returncode == 0, (step["name"], done)
    job.installed_perflab()
    assert "gh pr comment 7 --body-file comment.md" in job.told.read_text()
    comment = job.posted.read_text()
    assert comment.startswith("### perflab: nothing is worse\n")
    assert "trials that succeed    2 of 2    2 of 2  passed" in comment
    assert "| metric | value | trials |" in comment
    assert "success" in " ".join(job.verdicts())
    assert job.git("worktree", "list").count("\n") == 1


def test_a_merge_request_on_gitlab_that_cannot_be_compared_fails_and_says_why(tmp_path: Path) -> None:
    job = Job(tmp_path, "gitlab.yml")
    graph = job.project / "ci" / "perflab" / "system.yaml"
    graph.write_text(graph.read_text().replace("name: system", "name: another"))
    job.commit("the change")
    of_job = job.document["performance"]
    done = job.run(
        "\n".join([*of_job["before_script"], *of_job["script"]]),
        CI_MERGE_REQUEST_DIFF_BASE_SHA=job.base,
        CI_API_V4_URL="http://gitlab.invalid/api/v4",
        CI_PROJECT_ID="3",
        CI_MERGE_REQUEST_IID="7",
        PERFLAB_TOKEN="token",
    )
    assert done.returncode == 2, done
    job.installed_perflab()
    assert "http://gitlab.invalid/api/v4/projects/3/merge_requests/7/notes" in job.told.read_text()
    comment = job.posted.read_text()
    assert comment.startswith("### perflab: worse, or not to be compared\n")
    assert "the workload is another, in the baseline system" in comment
