"""Options, configuration files, errors, interpreters that are refused; and that generated parts are up to date."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
import sysconfig
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import ROOT, run_python

import um_cffi
from um_cffi import InvalidArgument, UmError, config, errors, stats
from um_cffi.binding import guard, option_types, options
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.attributes import Attributes, check_option


def test_option_table_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "options_py.py", "--check"], check=True)


@pytest.mark.parametrize("scope", list(options.OPTIONS))
def test_library_agrees_with_every_default(scope: str) -> None:
    """What the table calls the default can be set, and reads back as the library's own default does."""
    with Attributes(scope, {}) as untouched:
        for name, option in options.OPTIONS[scope].items():
            if option.kind.startswith("LIST") or option.default in ("", "NULL"):
                continue
            _, written = check_option((scope,), name, option.default)
            with Attributes(scope, {name: written}) as changed:
                assert changed.get(name) == untouched.get(name), name


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        (
            {"resolver_multicast_adress": "x"},
            ["resolver_multicast_adress does not exist", "resolver_multicast_address"],
        ),
        ({"transport": "tcp"}, ["transport is not a context option but a source option"]),
        ({"transport_tcp_datagram_max_size": 70000}, ["70000", "500..65535 bytes", "default 65535"]),
        ({"operational_mode": "sequental"}, ["sequental", "embedded, sequential", "did you mean sequential?"]),
        ({"resolver_unicast_ignore_unknown_source": 2}, ["must be True or False", "default 1"]),
        ({"default_interface": "999.1.1.1"}, ["default_interface", "999.1.1.1"]),
        ({"context_name": None}, ["leave it out"]),
    ],
)
def test_wrong_option_is_answered_with_what_is_right(keywords: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        um_cffi.Context(**keywords)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.errnum == 1 and isinstance(caught.value, ValueError)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([(s, n) for s, found in options.OPTIONS.items() for n in found]), st.integers(-(2**70), 2**70))
def test_any_number_is_taken_or_refused_with_a_text(which: tuple[str, str], number: int) -> None:
    scope, name = which
    try:
        _, written = check_option((scope,), name, number)
        with Attributes(scope, {name: written}):
            pass
    except UmError as error:
        assert name in str(error)


def test_mapping_and_keywords_go_together() -> None:
    mapping = {"default_interface": "127.0.0.1", "context_name": "one"}
    with um_cffi.Context(mapping, options={"context_name": "two"}, transport_tcp_port_high=14400) as ctx:
        assert ctx.getopt("context_name") == "two"
        assert ctx.getopt("default_interface") == "127.0.0.1/32"
        assert ctx.getopt("transport_tcp_port_high") == "14400"
        with um_cffi.Source(ctx, "news", options={"transport_tcp_nodelay": False}) as source:
            assert source.getopt("transport_tcp_nodelay") == "0"
        with um_cffi.Receiver(ctx, "news", ordered_delivery=0) as receiver:
            assert receiver.getopt("ordered_delivery") == "0"
        with um_cffi.WildcardReceiver(ctx, "^x", pattern_type="pcre", ordered_delivery=1) as receiver:
            assert receiver.getopt("pattern_type") == "pcre"
        with pytest.raises(InvalidArgument, match="no_such"):
            ctx.getopt("no_such")


def test_configuration_file_sets_defaults(tmp_path: Path) -> None:
    path = tmp_path / "um.cfg"
    path.write_text("context default_interface 127.0.0.1\ncontext context_name fromfile # comment\n")
    program = "import sys, um_cffi\nwith um_cffi.Context(sys.argv[1]) as ctx: print(ctx.getopt('context_name'))"
    assert "fromfile" in run_python(program, str(path))
    assert config.validate(path) == []


def test_configuration_file_problems_have_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "um.cfg"
    path.write_text(
        "# good\ncontext transport_tcp_port_lo 5\nsource transport tcq\n\nsorce x 1\ncontext context_name\n"
    )
    found = config.validate(path)
    assert [problem.line for problem in found] == [2, 3, 5, 6]
    assert "did you mean transport_tcp_port_low" in found[0].text and "did you mean tcp?" in found[1].text
    (missing,) = config.validate(tmp_path / "missing.cfg")
    assert missing.line == 0 and "no such file" in str(missing)
    with pytest.raises(InvalidArgument, match="no such file"):
        config.load(tmp_path / "missing.cfg")


def test_xml_configuration(tmp_path: Path) -> None:
    example = ROOT / "examples" / "config" / "um.xml"
    assert config.validate(example, "publisher") == []
    assert "no application without a name" in config.validate(example)[-1].text
    broken = tmp_path / "broken.xml"
    broken.write_text("<um-configuration version='1.0'><applications>")
    assert config.validate(broken)


def test_every_error_number_has_a_class() -> None:
    header = (ROOT / "include" / "lbm.h").read_text()
    numbers = {int(n) for n in re.findall(r"^#define LBM_E[A-Z_]+ (\d{1,2}) ", header, re.MULTILINE)}
    assert set(errors.BY_NUMBER) == numbers
    for number, kind in errors.BY_NUMBER.items():
        error = kind("text", number)
        assert isinstance(error, UmError) and str(error) == "text" and error.errnum == number
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errnum) == (kind, "text", number)
        assert kind.__name__ in um_cffi.__all__
    assert issubclass(um_cffi.TimedOut, TimeoutError) and issubclass(um_cffi.WouldBlock, BlockingIOError)


@pytest.mark.parametrize(
    ("kind", "type_name", "skipped"),
    [
        (stats.ContextStats, "lbm_context_stats_t", 0),
        (stats.SourceCounts, "um_src_stats_t", 0),
        (stats.ReceiverCounts, "um_rcv_stats_t", 0),
        (stats.NakCounts, "um_src_naks_t", 0),
        (stats.HotFailoverCounts, "um_hf_stats_t", 0),
        (stats.ContextCounts, "um_context_stats_t", 0),
        (stats.QueueStats, "um_collector_stats_t", 0),
        (stats.ObjectCounts, "um_object_counts_t", 0),
        *[(kind, f"lbm_src_transport_stats_{name}_t", 2) for name, kind in stats._SOURCE.values()],
        *[(kind, f"lbm_rcv_transport_stats_{name}_t", 2) for name, kind in stats._RECEIVER.values()],
    ],
)
def test_statistics_have_the_fields_of_the_library(kind: Any, type_name: str, skipped: int) -> None:
    declared = [name for name, _ in ffi.typeof(type_name).fields if not name.startswith("reserved")]
    assert [field.name for field in dataclasses.fields(kind)][skipped:] == declared


def test_enumerations_match_the_library() -> None:
    for member in um_cffi.MessageFlags:
        names = [f"{prefix}_MSG_FLAG_{member.name}" for prefix in ("LBM", "UM")]
        assert [getattr(lib, name) for name in names if hasattr(lib, name)] == [member.value]


def public(owner: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(owner).items() if not name.startswith("_")]


def documented() -> list[tuple[str, Any]]:
    found = []
    for name in um_cffi.__all__:
        value = getattr(um_cffi, name)
        found.append((name, value))
        if inspect.isclass(value):
            for base in value.__mro__:
                if base.__module__.startswith("um_cffi"):
                    found += [(f"{name}.{inner}", what) for inner, what in public(base)]
    return [(name, value) for name, value in found if callable(value) or isinstance(value, property)]


def test_every_public_name_has_a_docstring_and_types() -> None:
    for name, value in documented():
        what = value.fget if isinstance(value, property) else value
        assert inspect.getdoc(what), f"{name} has no docstring"
        if inspect.isfunction(what):
            signature = inspect.signature(what)
            assert signature.return_annotation is not inspect.Signature.empty, f"{name} says not what it returns"
            for parameter in list(signature.parameters.values())[1:]:
                assert parameter.annotation is not inspect.Parameter.empty, f"{name}({parameter.name}) has no type"


def test_p5_free_threaded_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else real(name))
    with pytest.raises(ImportError, match="free-threaded"):
        guard.check_interpreter()


def test_p5_subinterpreter_is_refused() -> None:
    program = """
try:
    import _interpreters as i
except ImportError:
    import _xxsubinterpreters as i
code = '''
try:
    import um_cffi
except ImportError as error:
    print("refused:", error, flush=True)
'''
number = i.create()
(getattr(i, "exec", None) or i.run_string)(number, code)
"""
    assert "refused: um_cffi does not support subinterpreters" in run_python(program)


def test_typed_dictionaries_name_every_option() -> None:
    for scope, name in (("context", "ContextOptions"), ("source", "SourceOptions"), ("receiver", "ReceiverOptions")):
        assert set(typing.cast(Any, getattr(option_types, name)).__annotations__) == set(options.OPTIONS[scope])


def test_f33_a_time_below_the_minimum_is_left_to_the_library() -> None:
    scope, written = check_option(("receiver",), "transport_lbtrm_nak_generation_interval", 1)
    with Attributes(scope, {"transport_lbtrm_nak_generation_interval": written}) as receiver:
        assert receiver.get("transport_lbtrm_nak_generation_interval") == "5"
    with pytest.raises(InvalidArgument, match="at least 1"):
        check_option(("receiver",), "late_join_info_request_maximum", 0)
