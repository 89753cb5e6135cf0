"""What Python knows of the plug-ins' interfaces without a compiler."""

from __future__ import annotations

import re

import pytest
from support import SOURCE

from perflab.middleware.plugin_program import ABI, RUNTIME_ABI


@pytest.mark.parametrize(
    ("header", "name", "known"),
    [
        ("native/middleware/middleware.h", "PERFLAB_MIDDLEWARE_ABI", ABI),
        ("native/runtime/plugin.h", "kPluginAbi", RUNTIME_ABI),
    ],
)
def test_the_interface_is_the_one_of_the_header(header: str, name: str, known: int) -> None:
    text = (SOURCE / header).read_text()
    assert re.findall(rf"\b{name}(?: =)? (\d+)u?\b", text) == [str(known)]
