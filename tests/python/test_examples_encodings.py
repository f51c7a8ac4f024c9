"""The samples of pre-defined messages print what the specification says of them: values, set state, versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts import Host
from interpreter import ENV, python

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python"
PRINTED = {
    "pdm_fields": """\
False 0 0.0
True 7 0.5
False 14 1.0
without its required fields: REQ_FIELD_NOT_SET
""",
    "pdm_iterate": """\
100 BOOLEAN set True
101 INT32 set 7
102 FLOAT set 3.5
103 INT8 not set None
104 FIX_STRING set Hello World!
105 STRING set variable length value
106 BOOLEAN_ARR set [True, False, True]
107 INT32_ARR set [1, 2, 3, 4, 5]
108 FIX_STRING_ARR set ['aaaaa', 'bbbbb']
""",
    "pdm_definition_sent": """\
definition 2003 version (1, 0)
1 191.50 2023-11-14T22:13:20.250000+00:00 no note
IBM 2 b'\\x00\\x01'
""",
    "pdm_cache": """\
without the cache: DEFN_INVALID
(1, 0) {'price': 191.5}
without the cache: DEFN_INVALID
(1, 1) {'price': 191.75, 'venue': 'XNYS'}
version 1.0: None - the newest: True
""",
}


def test_every_sample_of_pre_defined_messages_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("pdm_*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_the_sample_prints_the_documented_output(host: Host, tmp_path: Path, name: str) -> None:
    command = ("sh", "-c", 'exec "$@" 2>"$0"', str(tmp_path / "errors"), *python(FOLDER / f"{name}.py"))
    printed = host.start_command(*command, env=ENV).finish()
    assert printed == PRINTED[name], (tmp_path / "errors").read_text()
