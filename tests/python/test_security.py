"""Credentials of DDS Security: what is made of them, who can read it, and who needs them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perflab.errors import Unavailable
from perflab.middleware import Middleware, security

needs_openssl = pytest.mark.skipif(shutil.which(security.PROGRAM) is None, reason="openssl is not installed")


@needs_openssl
def test_an_authority_signs_an_identity_and_what_it_may_do(tmp_path: Path) -> None:
    security.make(tmp_path, 17)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {
        security.CA, security.CERTIFICATE, security.KEY, security.PERMISSIONS_CA, security.GOVERNANCE,
        security.PERMISSIONS,
    }  # fmt: skip
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / security.KEY).stat().st_mode & 0o077 == 0
    ca = tmp_path / security.CA
    subprocess.run(["openssl", "verify", "-CAfile", ca, tmp_path / security.CERTIFICATE], check=True)
    for name in (security.GOVERNANCE, security.PERMISSIONS):
        said = subprocess.run(
            ["openssl", "smime", "-verify", "-in", tmp_path / name, "-CAfile", ca, "-text"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert "<id>17</id>" in said.stdout


def test_what_openssl_cannot_do_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / security.CA).mkdir()
    with pytest.raises(Exception, match="could not create the credentials") as told:
        security.make(tmp_path, 17)
    assert "\n" not in str(told.value)


def test_where_openssl_is_missing_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="apt install openssl"):
        security.require()


def test_a_process_is_told_where_they_are_and_the_run_that_it_was_on(tmp_path: Path) -> None:
    middleware = Middleware("cyclonedds", "dds", None, None, options={"security": "on"})
    assert middleware.secured
    assert middleware.configuration(1, "lo", 0, credentials=tmp_path)["options"]["security"] == str(tmp_path)
    assert middleware.used.options["security"] == "on"
    of_the_users = Middleware("cyclonedds", "dds", None, None, options={"security": "/mine"})
    assert not of_the_users.secured
    assert of_the_users.configuration(1, "lo", 0)["options"]["security"] == "/mine"
    assert not Middleware("shm", "dds", None, None, options={"security": "on"}).secured
