"""The protobuf messages of monitoring, made from .proto files by the package `protobuf`, for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def compiler() -> str:
    found = shutil.which("protoc-c") or shutil.which("protoc")
    assert found, "neither protoc-c nor protoc is installed"
    return found


def pool_of(protos: Path, scratch: Path) -> descriptor_pool.DescriptorPool:
    """Descriptors of all .proto files of a folder."""
    out = scratch / "all.bin"
    names = sorted(path.name for path in protos.glob("*.proto"))
    subprocess.run(
        [compiler(), f"--proto_path={protos}", f"--descriptor_set_out={out}", "--include_imports", *names], check=True
    )
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        ours = file.name == "um_log_mon.proto"  # the only one that other implementations do not have
        assert file.package == ("openum" if ours else "lbmmon") and file.syntax == "proto3"
        pool.Add(file)
    return pool


def message_class(pool: descriptor_pool.DescriptorPool, name: str) -> Any:
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"lbmmon.{name}"))
