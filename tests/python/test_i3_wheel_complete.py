"""Requirement I3: the wheel has every feature. Installed in a fresh environment and used in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import Host, Process
from interpreter import printed
from packaging_support import ROOT, Built, clean_environment, fresh_environment, install, run

README = (ROOT / "README.md").read_text()
SYSTEM_PATH = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"])  # python3 of this version
BUNDLED = (
    "libxml2",
    "libicuuc",
    "libicudata",
    "liblzma",
    "libprotobuf-c",
    "libpcre2-8",
)  # PCRE2 last: mount itself needs it


@pytest.fixture(name="python", scope="module")
def installed_python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = fresh_environment(tmp_path_factory.mktemp("fresh") / "venv")
    install(python, built.wheel)
    return python


@pytest.fixture(name="empty")
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("UM_BUILD_DIR", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def ask(python: Path, code: str) -> str:
    return run(python, "-c", code, env=clean_environment()).strip()


def test_i3_the_five_lines_of_the_readme(python: Path, host: Host, empty: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert found
    code = found.group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 5
    assert printed(host.start_command(str(python), "-c", code).finish())[-1] == "b'Hello!'"


def pasted(page: Path, *words: str) -> list[str]:
    """The indented shell blocks of a page that have all these words."""
    blocks = re.findall(r"(?:^    .*\n)+", page.read_text(), re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks if all(word in block for word in words)]


def greet(host: Host, receiver: Process, *minsrc: str) -> None:
    """minsrc waits for nobody: a receiver that comes too late for one hears another."""
    for _ in range(30):
        host.start_command(*minsrc).finish()
        if "Hello!" in receiver.output:
            return


def test_i3_the_lines_for_c_programs_run_as_pasted(python: Path, host: Host, empty: Path) -> None:
    code = re.search(r"```c\n(.*?)```", README, re.DOTALL)
    assert code
    (empty / "hello.c").write_text(code.group(1))
    ways = pasted(ROOT / "docs" / "python" / "guide.md", "cc hello.c")
    assert len(ways) == 2
    path = {**clean_environment(), "PATH": f"{python.parent}:/usr/bin:/bin"}
    for lines in ways:
        run("sh", "-e", "-c", lines, env=path)
        receiver = host.start_command(str(empty / "hello"))
        greet(host, receiver, str(python.parent / "minsrc"))
        receiver.expect("^Greeting: Hello!$")
        receiver.popen.kill()


def test_i3_the_lines_for_installing_run_as_pasted(built: Built, empty: Path) -> None:
    """In a fresh folder with dist/ in it; what is downloaded otherwise is taken from this environment."""
    (empty / "dist").mkdir()
    (empty / "dist" / built.wheel.name).symlink_to(built.wheel)
    given = []
    for page in (ROOT / "README.md", ROOT / "docs" / "python" / "guide.md"):
        (lines,) = pasted(page, "python3 -m venv um-venv", "dist/*.whl", "activate")
        given.append(lines.replace("make wheel\n", "").replace("install dist", "install -q --no-deps --no-index dist"))
    for lines in dict.fromkeys(given):  # once where both pages have the same
        site = f"{sysconfig.get_path('purelib')}"
        check = f"\nPYTHONPATH={site} python -c 'import um_cffi; print(um_cffi.__file__)'\ncommand -v um\n"
        output = run("sh", "-e", "-c", lines + check, env={**clean_environment(), "PATH": SYSTEM_PATH})
        assert output.splitlines()[-2].startswith(str(empty / "um-venv")), output
        assert output.splitlines()[-1] == str(empty / "um-venv" / "bin" / "um")
        shutil.rmtree(empty / "um-venv")


@pytest.mark.parametrize("page", ["guide.md", "batches.md"])
def test_i3_the_pages_run_from_the_wheel(python: Path, host: Host, empty: Path, page: str) -> None:
    runner = ROOT / "tests" / "support" / "run_page.py"
    output = host.start_command(str(python), str(runner), str(ROOT / "docs" / "python" / page)).finish()
    assert f"{page}: " in output


def test_i3_module_reports_versions_features_and_its_own_paths(python: Path, empty: Path) -> None:
    output = run(python, "-m", "um_cffi", env=clean_environment())
    assert re.search(r"^um_cffi +0\.1\.0$", output, re.MULTILINE)
    package = python.parent.parent
    for name in ("include", "library", "pkg-config", "share"):
        found = re.search(rf"^{name} +(/.*)$", output, re.MULTILINE)
        assert found and found.group(1).startswith(str(package)) and Path(found.group(1)).exists()


def test_i3_every_daemon_and_example_is_a_command(python: Path, empty: Path, built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        programs = {name.rpartition("/")[2] for name in archive.namelist() if name.startswith("um_cffi/bin/")} - {""}
    daemons = {path.name for path in (ROOT / "csrc" / "daemons").iterdir() if path.is_dir()}
    examples = {path.stem for path in (ROOT / "examples" / "c").glob("*.c") if not path.name.startswith("ex_")}
    assert programs == daemons | examples
    for name in sorted(programs):
        assert (python.parent / name).exists(), f"{name} is not in [project.scripts] of pyproject.toml"
    command = subprocess.run(
        [python.parent / "lbmrd", "--help"], env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert "lbmrd, libum version 0.1.0" in command.stdout + command.stderr


def test_i3_every_command_has_its_manual_page_beside_it(python: Path, built: Built) -> None:
    pages = {path.stem for path in (python.parents[1] / "share" / "man").glob("man[18]/*")}
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        commands = set(re.findall(r"^(\w+) = um_cffi", archive.read(name).decode(), re.MULTILINE))
    assert commands <= pages and {"um-doctor", "um-top"} <= pages


def test_i3_the_services_and_what_belongs_to_them_are_there(python: Path, built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    units = {path.name.removesuffix(".in") for path in (ROOT / "packaging" / "systemd").glob("*.service.in")}
    assert {f"um_cffi/share/systemd/{name}" for name in units} <= names
    for name in ("sysusers/libum.conf", "prometheus/um-alerts.yml", "grafana/um-fleet.json"):
        assert f"um_cffi/share/{name}" in names


def test_i3_the_commands_work(python: Path, host: Host, empty: Path) -> None:
    um = str(python.parent / "um")
    receiver = host.start_command(um, "sub", "-n", "1", "news")
    host.start_command(um, "pub", "news", "hello").finish()
    assert "hello\n" in receiver.finish()
    assert "0 failures" in host.start_command(um, "doctor").finish()


def test_i3_every_way_to_receive(python: Path, host: Host, empty: Path) -> None:
    code = """
import asyncio, um_cffi
with um_cffi.Context() as ctx:
    got = []
    by_callback = um_cffi.Receiver(ctx, "t", lambda message: got.append(bytes(message.data)))
    by_batch = um_cffi.Receiver(ctx, "t")
    by_loop = um_cffi.WildcardReceiver(ctx, "^t$")
    source = um_cffi.Source(ctx, "t")
    source.wait_receivers()
    by_batch.wait_ready()
    by_loop.wait_ready()
    source.send_many([b"1234", b"5678"], flush=True)
    values = []
    for batch in by_batch.batches(timeout=60):
        values += batch.decode("<u4").tolist()
        if len(values) == 2 or not batch:
            break
    async def one():
        async for message in by_loop:
            return bytes(message.data)
    first = asyncio.run(asyncio.wait_for(one(), 60))
    print(values, batch.to_arrow().num_columns, first)
print(got)
"""
    lines = printed(host.start_command(str(python), "-c", code).finish())
    assert lines[-2:] == ["[875770417, 943142453] 7 b'1234'", "[b'1234', b'5678']"]


def test_i3_a_c_program_links_the_library_of_the_wheel(python: Path, empty: Path) -> None:
    (empty / "program.c").write_text(
        "#include <lbm/um.h>\n#include <stdio.h>\nint main(void) { puts(um_version()); return 0; }\n"
    )
    include, library, pkgconfig = ask(
        python, "import um_cffi as u; print(u.get_include(), u.get_library(), u.get_pkgconfig_dir())"
    ).split()
    folder = Path(library).parent
    run("cc", "program.c", f"-I{include}", f"-L{folder}", "-l:libum.so.0", f"-Wl,-rpath,{folder}", "-o", "by_path")
    assert run(empty / "by_path") == "0.1.0\n"
    env = {**clean_environment(), "PKG_CONFIG_PATH": pkgconfig}
    flags = run("pkg-config", "--cflags", "--libs", "um", env=env).split()
    run("cc", "program.c", *flags, f"-Wl,-rpath,{folder}", "-o", "by_name")
    assert run(empty / "by_name") == "0.1.0\n"


def bare_machine() -> str:
    """Shell text that makes the libraries which the wheel brings along unusable in the system's folders."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    paths = [path for name in BUNDLED for path in re.findall(rf"{name}\.so\S* .*=> (\S+)", known)]
    assert paths
    return "".join(f"mount --bind /dev/null {Path(path).resolve()};" for path in dict.fromkeys(paths))


def test_i3_nothing_of_the_system_is_needed(python: Path, host: Host, empty: Path) -> None:
    """Patterns (PCRE2) and XML files (libxml2) work where neither library is installed; so do the C programs."""
    code = """
import sys, um_cffi
um_cffi.config.load(sys.argv[1], "publisher")
with um_cffi.Context() as ctx:
    receiver, source = um_cffi.WildcardReceiver(ctx, "^new.$"), um_cffi.Source(ctx, "news")
    receiver.wait_ready()
    source.send(b"Hello!", flush=True)
    print(ctx.getopt("resolver_multicast_ttl"), bytes(receiver.recv()))
"""
    prefix, xml = bare_machine(), str(ROOT / "examples" / "config" / "um.xml")
    system = host.start_command("sh", "-c", prefix + 'exec "$@"', "sh", "xmllint", "--version")
    assert system.wait() != 0, "the libraries of the system are still in use"
    done = host.start_command("sh", "-c", prefix + 'exec "$@"', "sh", str(python), "-c", code, xml).finish()
    assert printed(done)[-1] == "0 b'Hello!'"
    receiver = host.start_command("sh", "-c", prefix + 'exec "$@"', "sh", str(python.parent / "minrcv"))
    greet(host, receiver, "sh", "-c", prefix + 'exec "$@"', "sh", str(python.parent / "minsrc"))
    assert "'Hello!'" in receiver.finish()


def test_i3_the_wheel_is_small(built: Built) -> None:
    """ICU, which libxml2 asks for where neither it nor the C library knows an encoding, took 13 MB of 15."""
    assert built.wheel.stat().st_size < 6 << 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "iso-8859-15", "windows-1252", "koi8-r"])
def test_i3_configuration_files_of_every_usual_encoding(python: Path, empty: Path, encoding: str) -> None:
    text = (ROOT / "examples" / "config" / "um.xml").read_text()
    text = re.sub(r"<\?xml.*?\?>\s*", "", text)
    (empty / "um.xml").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'.encode(encoding, "replace"))
    code = """
import um_cffi
um_cffi.config.load("um.xml", "publisher")
with um_cffi.Context() as ctx:
    print(ctx.getopt("resolver_multicast_ttl"))
"""
    assert ask(python, code).splitlines()[-1] == "0"


def test_i3_an_unknown_encoding_is_an_error_with_a_text(python: Path, empty: Path) -> None:
    (empty / "um.xml").write_text('<?xml version="1.0" encoding="nonsense-7"?>\n<um-configuration version="1.0"/>')
    code = """
import um_cffi
try:
    um_cffi.config.load("um.xml", "publisher")
except um_cffi.UmError as error:
    print(type(error).__name__, error)
"""
    assert "encoding" in ask(python, code).splitlines()[-1]


def test_i3_the_licences_of_what_is_bundled_are_there(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = archive.namelist()
    libraries = {re.sub(r"-[0-9a-f]{8}\.so.*", "", name.rpartition("/")[2]) for name in names if ".libs/lib" in name}
    licences = {name.rpartition("/")[2].removesuffix(".txt") for name in names if "/licenses/bundled/" in name}
    assert libraries == licences and {"libpcre2-8", "libprotobuf-c", "libxml2"} <= libraries


def test_i3_the_messages_of_monitoring_are_there_as_text_and_as_headers(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    protos = {path.stem for path in (ROOT / "proto").glob("*.proto")}
    assert {f"um_cffi/share/proto/{name}.proto" for name in protos} <= names and "ums_mon" in protos
    assert {f"um_cffi/include/lbm/gen/{name}.pb-c.h" for name in protos} <= names


def test_i3_types_are_declared(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    assert {
        "um_cffi/py.typed",
        "um_cffi/binding/_native.pyi",
        "um_cffi/binding/_native.abi3.so",
        "um_cffi/lib/libum.so.0",
    } <= names
    assert "um_cffi/binding/build.py" not in names and not any(name.endswith(".c") for name in names)
