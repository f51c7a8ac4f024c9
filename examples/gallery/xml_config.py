"""An XML configuration file: options by application, context and topic, outside of the program."""

from pathlib import Path

import um_cffi

Path("um.xml").write_text("""<?xml version="1.0" encoding="UTF-8"?>
<um-configuration version="1.0">
  <applications>
    <application name="trader">
      <contexts>
        <context name="fast">
          <options type="context"><option name="resolver_multicast_ttl" default-value="0"/></options>
          <sources>
            <topic topicname="Prices">
              <options type="source"><option name="implicit_batching_interval" default-value="10"/></options>
            </topic>
          </sources>
        </context>
      </contexts>
    </application>
  </applications>
</um-configuration>
""")
um_cffi.config.load("um.xml", "trader")
with um_cffi.Context(context_name="fast") as ctx:
    print("TTL", ctx.getopt("resolver_multicast_ttl"))
    for topic in ("Prices", "News"):
        with um_cffi.Source(ctx, topic) as source:
            print(topic, source.getopt("implicit_batching_interval"), "ms")
