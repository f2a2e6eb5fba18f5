# SPDX-License-Identifier: GPL-2.0-only
"""`python -m ream` is the command."""

import signal
import sys

# Ctrl-C waits for main(), which says what was interrupted: an import would answer with a trace.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

from ream.cli import main  # noqa: E402

sys.exit(main())
