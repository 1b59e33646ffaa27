#!/usr/bin/env python3
"""Does `discnice run --net R` hold real programs to R, and do they get R?

  clients     curl, wget, rsync over ssh, git, pip, node, asyncio, redis: rate and processor time
  servers     three nginx servers at 1.5, 3 and 6 MB/s, and the latency of an unlimited fourth
              (Rate Windows, figure 10)
  checkpoint  90 MB are sent while a web server gets busy (Rate Windows, figure 9)

All traffic goes through the loopback device, which --net-loopback makes count. The rate is what the
class was charged between the first and the last second of the transfer; processor time, of further
runs, is compared with that of the same program moving as many bytes without a limit. Programs that are not installed
are left out; --root names a folder with further ones. As root, everything but sshd runs as nobody.
"""
import argparse
import os

from network_bench import Bench
from network_clients import clients
from network_servers import checkpoint, servers

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["clients", "servers", "checkpoint"])
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--root", help="a folder with further programs, as unpacked packages")
    parser.add_argument("--rates", default="1,10", help="MB/s, comma-separated")
    parser.add_argument("--only", help="clients, comma-separated")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pairs", type=int, help="runs with and without a limit: of servers 5, of clients 2")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    try:
        {"clients": clients, "servers": servers, "checkpoint": checkpoint}[arguments.part](bench, arguments)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
