"""DDS Security: the credentials of a trial, created at its beginning and deleted with it.

All processes have one identity. The protection is the strictest that both libraries support: participants without an
identity of this authority are rejected, datagrams are signed, discovery and messages encrypted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from perflab.errors import PerflabError, Unavailable

OPTION = "security"
ON = "on"
PROGRAM = "openssl"
VALID_DAYS = "2"
# File names expected by the plug-ins (native/middleware/support/security.h).
CA, CERTIFICATE, KEY = "identity_ca.pem", "identity_cert.pem", "identity_key.pem"
PERMISSIONS_CA, GOVERNANCE, PERMISSIONS = "permissions_ca.pem", "governance.p7s", "permissions.p7s"
SUBJECT = "CN=perflab"

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SCHEMA = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-Security/20170801/omg_shared_ca_{}.xsd"'


def wanted(options: Mapping[str, str]) -> bool:
    """Whether perflab creates credentials for a middleware with these options."""
    return options.get(OPTION) == ON


def require() -> None:
    """Raises Unavailable if they cannot be created."""
    if shutil.which(PROGRAM) is None:
        raise Unavailable(
            f"{OPTION}={ON} needs {PROGRAM}, which is not installed; install it with `apt install openssl`"
        )


def make(folder: Path, domain: int) -> None:
    """Writes all files into an empty folder. Raises PerflabError, OSError."""
    folder.chmod(0o700)
    authority, request, serial = folder / "ca_key.pem", folder / "request.pem", folder / "ca.srl"
    ca = folder / CA
    _openssl("req", "-x509", *_CURVE, "-days", VALID_DAYS, "-subj", "/CN=perflab authority", "-keyout", authority,
             "-out", ca)  # fmt: skip
    _openssl("req", *_CURVE, "-subj", f"/{SUBJECT}", "-keyout", folder / KEY, "-out", request)
    _openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", authority, "-CAserial", serial, "-CAcreateserial",
             "-days", VALID_DAYS, "-out", folder / CERTIFICATE)  # fmt: skip
    for name, document in ((GOVERNANCE, _governance(domain)), (PERMISSIONS, _permissions(domain))):
        plain = folder / f"{name}.xml"
        plain.write_text(document, encoding="utf-8")
        _openssl("smime", "-sign", "-text", "-in", plain, "-signer", ca, "-inkey", authority, "-out", folder / name)
        plain.unlink()
    shutil.copyfile(ca, folder / PERMISSIONS_CA)
    for path in (authority, request, serial):  # no further identity is needed
        path.unlink(missing_ok=True)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "OPENSSL_CONF": os.devnull},
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["without an error message"])[-1]
        raise PerflabError(f"{PROGRAM} {arguments[0]} could not create the credentials of {OPTION}={ON}: {last}")


def _governance(domain: int) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<dds {_SCHEMA.format("governance")}>
<domain_access_rules><domain_rule>
<domains><id>{domain}</id></domains>
<allow_unauthenticated_participants>false</allow_unauthenticated_participants>
<enable_join_access_control>true</enable_join_access_control>
<discovery_protection_kind>ENCRYPT</discovery_protection_kind>
<liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
<rtps_protection_kind>SIGN</rtps_protection_kind>
<topic_access_rules><topic_rule>
<topic_expression>*</topic_expression>
<enable_discovery_protection>true</enable_discovery_protection>
<enable_liveliness_protection>true</enable_liveliness_protection>
<enable_read_access_control>true</enable_read_access_control>
<enable_write_access_control>true</enable_write_access_control>
<metadata_protection_kind>ENCRYPT</metadata_protection_kind>
<data_protection_kind>ENCRYPT</data_protection_kind>
</topic_rule></topic_access_rules>
</domain_rule></domain_access_rules>
</dds>
"""


def _permissions(domain: int) -> str:
    everything = "<topics><topic>*</topic></topics><partitions><partition>*</partition></partitions>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<dds {_SCHEMA.format("permissions")}>
<permissions><grant name="perflab">
<subject_name>{SUBJECT}</subject_name>
<validity><not_before>2020-01-01T00:00:00</not_before><not_after>2120-01-01T00:00:00</not_after></validity>
<allow_rule>
<domains><id>{domain}</id></domains>
<publish>{everything}</publish>
<subscribe>{everything}</subscribe>
</allow_rule>
<default>DENY</default>
</grant></permissions>
</dds>
"""
