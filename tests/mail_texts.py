# SPDX-License-Identifier: GPL-2.0-only
"""Threads as archives show them, in shapes that are known and words and numbers that are not."""

BINDINGS = """\
nd_pmem rebind, 8 GB fsdax namespace, map=dev
  Base(v9.1-rc2):
    First binding: 91 ms
    Average of subsequent rebinds: 17.25 ms
  Full series:
    First binding: 83 ms
    Average of subsequent rebinds: 9.5 ms

dax_pmem rebind, 8 GB devdax namespace, align=2097152
  Base(v9.1-rc2):
    First binding: 87 ms
    Average of subsequent rebinds: 15.75 ms
  Full series:
    First binding: 80 ms
    Average of subsequent rebinds: 8.25 ms
"""


def quote(text: str) -> str:
    return "".join(f"> {line}".rstrip() + "\n" for line in text.splitlines())


ORIGINAL = f"""\
From: Ada Author <ada@example.org>
To: linux-mm@example.org,
\tlinux-kernel@example.org
Subject: [PATCH v2 0/3] mm: initialise maps with fewer
 stores than there are fields
Date: Mon, 7 Sep 2026 10:00:00 +0200\t[thread overview]
Message-ID: <2026-maps-1@author.example.org> (raw)

All of this was measured in a VM on an Intel Tiger Lake server.

{BINDINGS}
Thanks,
Ada
"""

REPLY = f"""\
Some list of an archive
 help / color / mirror / Atom feed
From: Carl Critic <carl@critic.example.org>
Subject: Re: [PATCH v2 0/3] mm: initialise maps with fewer stores
Date: Tue, 8 Sep 2026 11:30:00 +1000\t[thread overview]
Message-ID: <2026-critic-9@critic.example.org> (raw)
In-Reply-To: <2026-maps-1@author.example.org>

On 2026-09-07 at 18:00 +1000, Ada Author <ada@example.org> wrote...
> All of this was measured in a VM on an Intel Tiger Lake server.
>
{quote(BINDINGS)}
I cannot reproduce this. Both an elderly Intel machine and a recent Zen 9 based
machine show roughly 7% slower results with the series applied doing
ZONE_DEVICE_PRIVATE, where I time the memremap_pages() call of 4 32GB memremaps.

diff --git a/lib/x.c b/lib/x.c
--- a/lib/x.c
+++ b/lib/x.c
@@ -1,3 +1,4 @@
 static int sizes[] = {{
+\t1, 2, 3, 4,
 \t5, 6, 7, 8,
 }};

> --
> 2.20.1

  parent reply\tother threads:[~2026-09-08  1:30 UTC|newest]
"""

NO_BLANKS = """\
[PATCH v1 2/2] mm: write each map once
From: Ada Author
Date: Tue Sep 01 2026 - 23:10:09 EST
Tested with 8 GB on AMD Milan
server.
Base(v9.1-rc1):
First binding for nd_pmem driver: 96 ms
Average of subsequent rebinds: 18.5 ms
First binding for dax_pmem driver: 88 ms
Average of subsequent rebinds: 16.5 ms
With this series:
First binding for nd_pmem driver: 84 ms
Average of subsequent rebinds: 10.5 ms
First binding for dax_pmem driver: 81 ms
Average of subsequent rebinds: 9.25 ms
This lowers the average rebind time by roughly 43.2% for nd_pmem and
43.9% for dax_pmem.
Signed-off-by: Ada Author <ada@xxxxxxxxxxx>
---
mm/map.c | 12 +++++++-----
1 file changed, 7 insertions(+), 5 deletions(-)
diff --git a/mm/map.c b/mm/map.c
@@ -10,11 +10,21 @@ static void write(struct page *page,
static int x[] = {
+ 1, 2, 3,
"""

BOOTS = """\
linux/mm
Dora Developer 0123456789 mm: initialise pages with threads
Boots wait for this.

    Intel(R) Xeon(R) Gold 9999 CPU @ 3.00GHz (Somelake, bare metal)
      2 nodes * 4 cores * 2 threads = 16 CPUs
      32G/node = 64G memory

                   kernel boot                 deferred init
                   ------------------------    ------------------------
    node% (thr)    speedup  time_ms (stdev)    speedup  time_ms (stdev)
          (  0)         --    901.5 (  2.5)         --    301.5 (  1.5)
     100% (  8)      20.5%    716.5 (  3.5)      70.5%     88.5 (  0.5)

    AMD EPYC 9999 8-Core Processor (Zen, kvm guest)
      1 node * 2 cores * 2 threads = 4 CPUs
      8G/node = 8G memory

                   kernel boot                 deferred init
                   ------------------------    ------------------------
    node% (thr)    speedup  time_ms (stdev)    speedup  time_ms (stdev)
          (  0)         --    501.5 (  2.0)         --     41.5 (  0.0)
     100% (  4)       5.5%    474.0 (  3.0)      50.5%     20.5 (  0.5)

On Tim's 24-CPU and 48G memory system:

    Without this patch series:
    [    0.311111] node 0 initialised, 5898240 pages in 71ms
    [    0.322222] node 1 initialised, 6291456 pages in 77ms
    ...
    [    0.500001] Run /sbin/init as init process

    With this patch series:
    [    0.211111] node 1 initialised, 6291456 pages in 13ms
    [    0.222222] node 0 initialised, 5898240 pages in 12ms

Signed-off-by: Dora Developer <dora@example.org>
Link: http://lkml.kernel.org/r/20200501.77-4-dora@example.org
2020-05-02 03:04:05 -07:00
..
swap.c mm: something else 2020-01-02 10:00:00 -07:00
"""

FOLIOS = """\
On an Intel Xeon Bronze 1234 CPU, fork'ing with 1GiB of folios results in
the following runtimes for fork() (shorter is better):

Folio Size | v9.2-rc1 |      New | Change
------------------------------------------
      4KiB | 0.021000 | 0.020500 |   - 2%
     64KiB | 0.020750 | 0.015500 |   -25%

The same for munmap():

Folio Size | v9.2-rc1 |      New | Change
------------------------------------------
      4KiB | 0.031000 | 0.030500 |   - 2%
     64KiB | 0.030750 | 0.025500 |   -17%
"""

GRIDS = """\
System Info: AMD Zen 7 EPYC server (1 socket, 8 cores), v9.3-rc4,
PTDMA hardware.

a. Baseline (vanilla kernel: v9.3-rc4, single-threaded):

============================================
       | 4K          | 64K         | 2M         |
============================================
       |1.55±0.19    | 2.16±0.09   | 3.88±0.19  |

b. DMA offload (Patched Kernel, N DMA channels):

============================================
Channel Cnt| 4K      | 64K         | 2M          |
============================================
1      | 1.63±0.26   | 2.16±0.13   | 4.64±0.07  |
4      | 1.78±0.16   | 3.36±0.18   | 9.16±0.20  |
"""

MODES = """\
  Mode            Wall time(ms)  Migrated   DMA_Copy  Hog_Iters    User%     Sys%    Idle%
  --------------------------------------------------------------------------------------------
1 baseline         1708         563506          -      -          0.00%   98.40%    1.29%
2 dma              1887         622952     623181      -          0.00%   70.65%   29.55%
"""

FOLLOW_UP = f"""\
From: "Gray, Sam" <sam@example.com>
Subject: Re: [RFC PATCH v1 0/6] Move pages in batches
Date: Wed, 18 Nov 2026 19:59:07 +0530\t[thread overview]
Message-ID: <follow-up-1@example.com> (raw)
In-Reply-To: <cover-0@example.com>

On 11/9/2026 5:37 PM, Sam Gray wrote:
> This is the first RFC.

[snip]

{quote(GRIDS)}
I also tried compaction (on above system), where each allocation needs it.

{MODES}
On an idle system, wall time increases by 10.5% because batches are small. It
took 16 pages (BATCH = 16 pages) each.
"""

UNKNOWN = """\
workload    before   after   change
build        101.5    99.5     -2%
untar         11.5    10.5     -9%
"""
