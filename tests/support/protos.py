"""The messages of proto/*.proto for the package protobuf, compiled where they are used."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTOS = Path(__file__).resolve().parents[2] / "proto"


def message_class(folder: Path, name: str) -> Any:
    """The class of a message of the package lbmmon; `folder` is for what the compiler makes."""
    compiler = shutil.which("protoc-c") or shutil.which("protoc")
    assert compiler, "neither protoc-c nor protoc is installed"
    out = folder / "protos.bin"
    names = sorted(path.name for path in PROTOS.glob("*.proto"))
    subprocess.run(
        [compiler, f"--proto_path={PROTOS}", f"--descriptor_set_out={out}", "--include_imports", *names], check=True
    )
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"lbmmon.{name}"))
