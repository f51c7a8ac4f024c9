"""The recorder process of the demo: everything that is published on its topics, into a folder for Spark.

Says "ready" once every topic has been found, reports twice a second as JSON lines, ends with the input's next line.
"""

from __future__ import annotations

import json
import sys
import threading

import market

from um_cffi import Context
from um_cffi.recording import Recorder


def await_line(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


def main() -> None:
    settings = json.loads(sys.argv[1])
    stop = threading.Event()
    with (
        Context(**settings["options"]) as ctx,
        Recorder(ctx, settings["folder"], market.PATTERN, source_timestamp=market.SENT) as recorder,
    ):
        recorder.receiver.wait_ready(len(settings["symbols"]), 60)
        print(json.dumps({"ready": True}), flush=True)
        threading.Thread(target=await_line, args=(stop,), daemon=True).start()
        while not stop.wait(0.2):
            print(json.dumps({"received": recorder.stats().messages}), flush=True)
        recorder.close()
        stats = recorder.stats()
        lost = stats.lost + stats.dropped
        print(json.dumps({"received": stats.messages, "lost": lost, "bytes": stats.bytes}), flush=True)


if __name__ == "__main__":
    main()
